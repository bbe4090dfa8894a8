package leaf

import (
	"strings"

	"goprof/arch"
	"goprof/vmstructs"
)

// If a bytecode stores a reference, C2 also makes a barrier for the collector. The barrier accesses no field and no
// array, but it has known instructions:
//
//   - The barrier marks the card of the place to which the reference is stored: it shifts the place's address right by
//     nine bits, and adds the table's address, a constant (gc/shared/c2/cardTableBarrierSetC2.cpp, post_barrier). G1
//     first asks whether both objects lie in one region: it shifts the difference of their addresses by twenty bits or
//     more (gc/g1/c2/g1BarrierSetC2.cpp, post_barrier; since 24 gc/g1/g1BarrierSetAssembler_x86.cpp).
//   - G1 and Shenandoah note the overwritten reference while they mark. A byte of the thread says whether they mark
//     (pre_barrier).

// cardShift is the logarithm of a card's size (gc/shared/cardTable.hpp). minRegionShift is that of a region's smallest
// size, a megabyte.
const cardShift, minRegionShift = 9, 20

const (
	// maxMark bounds the instructions from the shift to the end of the barrier for the card, on both CPUs: arm64 takes
	// two more for the table's address. maxRegion bounds those from the test of the region to the shift. maxBefore
	// bounds the instructions that prepare this test: two copies and their difference, or the store itself.
	maxMark, maxRegion, maxBefore = 8, 7, 3
	// maxTable bounds the instructions from the shift to the end of the table's address, which takes three on arm64.
	maxTable = 3
)

const storeBarrier = "store barrier"

func (p *place) barrier() verdict {
	if !p.code.inBarrier(p.n) {
		return verdict{}
	}
	return p.onRouteFor(storeBarrier)
}

// inBarrier reports whether an instruction is part of a barrier of a store.
func (m *codeMap) inBarrier(n int32) bool {
	before := m.before(n)
	switch f := m.list[n].flow; {
	case m.testsMarking(n):
		return true
	case f == arch.FlowBranch && before != notInCode && m.testsMarking(before):
		return true
	case f != arch.FlowNext && f != arch.FlowBranch:
		return false
	}
	for at, k := n, 0; k < maxMark; k++ { // n is at or behind the shift
		if m.shiftsToCard(at) {
			return k == 0 || m.isWithin(n, at, maxMark, m.endsMark)
		}
		if at = m.before(at); at == notInCode || m.list[at].flow != arch.FlowNext {
			break
		}
	}
	for at, k := n, 0; k < maxRegion+maxBefore; k++ { // n is before the shift
		if m.shiftsToCard(at) {
			return m.testsRegion(n, at)
		}
		f := m.list[at].flow
		if at = m.next(at); at == notInCode || f != arch.FlowNext && f != arch.FlowBranch {
			break
		}
	}
	return false
}

// isWithin reports whether n is one of the first most instructions beginning with from. It returns false if ends is
// true for an instruction before n.
func (m *codeMap) isWithin(n, from int32, most int, ends func(int32) bool) bool {
	for range most {
		if from == n {
			return true
		}
		if ends(from) {
			return false
		}
		if from = m.next(from); from == notInCode {
			return false
		}
	}
	return false
}

// endsMark reports whether an instruction is the last of a card's mark: the first store of a byte, or the first branch,
// call or return. Parallel and Serial store at once. G1 first compares the card with that of young regions, and
// branches. x86 compares in memory, but arm64 loads the byte first, so a load of a byte does not end the mark.
func (m *codeMap) endsMark(n int32) bool {
	i := &m.list[n]
	if i.flow != arch.FlowNext {
		return true
	}
	return i.byte && i.base == arch.BaseOther && i.stores
}

// testsRegion reports whether instruction n is part of a test of the region before the shift.
func (m *codeMap) testsRegion(n, shift int32) bool {
	begin, found := shift, false
	for range maxRegion {
		before := m.before(begin)
		if before == notInCode {
			break
		}
		begin = before
		if found = m.list[begin].shift >= minRegionShift; found {
			break
		}
	}
	for range maxBefore {
		if before := m.before(begin); before != notInCode && m.list[before].flow == arch.FlowNext {
			begin = before
		}
	}
	return found && m.isWithin(n, begin, maxRegion+maxBefore, func(at int32) bool { return at == shift })
}

// testsMarking reports whether an instruction tests the byte that is set while the collector marks. On arm64 this is
// a load of the byte and the branch behind it.
func (m *codeMap) testsMarking(n int32) bool {
	i := &m.list[n]
	return i.base == arch.BaseThread && i.byte && (i.kindOf == arch.KindCompare || i.loads)
}

// shiftsToCard reports whether an instruction computes a card's number from an address. Such an instruction is followed
// by the table's address.
func (m *codeMap) shiftsToCard(n int32) bool {
	if m.list[n].shift != cardShift {
		return false
	}
	for range maxTable {
		if n = m.next(n); n == notInCode || m.list[n].flow != arch.FlowNext {
			return false
		}
		if m.list[n].kindOf == arch.KindLong {
			return true
		}
	}
	return false
}

// marksCard reports whether a bytecode may store a reference, and so have a barrier.
func marksCard(_ *vmstructs.Method, b *vmstructs.Bytecode, intrinsic *vmstructs.Method) bool {
	switch b.Op {
	case vmstructs.OpPutfield, vmstructs.OpPutstatic, vmstructs.OpAastore:
		return true
	}
	if intrinsic == nil {
		return false
	}
	name := letters(intrinsic.Name)
	for _, part := range []string{"reference", "object", "compareand", "getandset", "clone", "refersto"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
