package unwind

import (
	"strings"

	"goprof/arch"
	"goprof/vmstructs"
)

// Where a bytecode stores a reference, C2 also makes a barrier for the collector. Its instructions access neither field
// nor array, but they are known:
//
//   - The card that the place of the reference lies in is marked (gc/shared/c2/cardTableBarrierSetC2.cpp, post_barrier):
//     the place's address is shifted right by nine bits, and the table's address, a constant, is added. G1 first asks
//     whether both objects lie in one region: it shifts the difference of their addresses by twenty bits or more
//     (gc/g1/c2/g1BarrierSetC2.cpp, post_barrier; since 24 gc/g1/g1BarrierSetAssembler_x86.cpp).
//   - G1 and Shenandoah note what is overwritten while they mark. Whether they do is a byte of the thread (pre_barrier).

// cardShift is the logarithm of a card's size (gc/shared/cardTable.hpp). Regions have a megabyte at least.
const cardShift, minRegionShift = 9, 20

const (
	// maxRegion bounds the instructions of a card's mark before the shift, maxMark those behind it.
	maxRegion, maxMark = 9, 7
	// maxTable bounds those from the shift to the table's address.
	maxTable = 3
)

// storeBarrier is the name of such code.
const storeBarrier = "store barrier"

// inBarrier reports whether an instruction is part of a barrier of a store.
func (m *codeMap) inBarrier(n int32) bool {
	if m.asksForMarking(n) {
		return true
	}
	if m.list[n].flow == arch.FlowBranch {
		if before := m.before(n); before != notInCode && m.asksForMarking(before) {
			return true
		}
	}
	if m.list[n].flow != arch.FlowNext && m.list[n].flow != arch.FlowBranch {
		return false
	}
	for at, k := n, 0; at != notInCode && k < maxMark; at, k = m.before(at), k+1 { // n is not before the shift
		if m.shiftsToCard(at) {
			return n <= m.markEnd(at) && n >= at
		}
		if at != n && m.list[at].flow != arch.FlowNext {
			break
		}
	}
	region := false
	for at, k := n, 0; at != notInCode && k < maxRegion; at, k = m.next(at), k+1 { // n is before the shift
		region = region || m.list[at].shift >= minRegionShift
		if m.shiftsToCard(at) {
			return m.regionBefore(n) || k == 0 || region && k <= maxRegion
		}
		if f := m.list[at].flow; f != arch.FlowNext && f != arch.FlowBranch {
			break
		}
	}
	return false
}

// asksForMarking reports whether an instruction asks whether the collector marks.
func (m *codeMap) asksForMarking(n int32) bool {
	i := &m.list[n]
	return i.kindOf == arch.KindCompare && i.base == arch.BaseThread && i.byte
}

// shiftsToCard reports whether an instruction makes the number of a card of an address: the table's address follows.
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

// markEnd is the last instruction of a mark: the branch behind the first access of the card's byte, or that access.
func (m *codeMap) markEnd(n int32) int32 {
	for range maxMark {
		if i := &m.list[n]; i.byte && i.base == arch.BaseOther {
			if next := m.next(n); next != notInCode && m.list[next].flow == arch.FlowBranch {
				return next
			}
			return n
		}
		next := m.next(n)
		if next == notInCode || m.list[next].flow != arch.FlowNext {
			return n
		}
		n = next
	}
	return n
}

// regionBefore reports whether the question for the region stands before an instruction.
func (m *codeMap) regionBefore(n int32) bool {
	for range maxMark {
		if n = m.before(n); n == notInCode || m.list[n].flow != arch.FlowNext && m.list[n].flow != arch.FlowBranch {
			return false
		}
		if m.list[n].shift >= minRegionShift {
			return true
		}
	}
	return false
}

// marksCard reports whether a bytecode stores a reference, as far as the bytecode tells, and so may have a barrier.
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
