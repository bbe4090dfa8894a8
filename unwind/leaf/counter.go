package leaf

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// C1 with profiling counts entries and branches of a method in the method's MethodData. The address of the MethodData
// is a constant in the code, so it shows which method the code counts for:
//
//   - A branch (c1_LIRGenerator.cpp, profile_branch; c1_LIRAssembler_x86.cpp, cmove): the address; the offset of one
//     counter; a jump on the result of the comparison before; the offset of the other counter; the counter is loaded,
//     incremented without a change of the flags, and stored; then the branch itself.
//   - The entry of a method (c1_LIRGenerator.cpp, increment_event_counter_impl): the address; the counter is loaded,
//     incremented, stored and masked; if the result is zero, a jump to the VM.
//   - On arm64 the address takes three instructions, csel chooses between both offsets (c1_LIRAssembler_aarch64.cpp,
//     cmove), and the mask is compared with zero. Only that comparison distinguishes an entry from other counters.
//
// Other counters (of calls, of the types of receivers) are recognised by the address alone: the counter's offset is
// added to the register with the address, and all instructions that use the result belong to the counter. C1's records
// do not describe counters. They describe the code behind a counter: at an entry the method's first bytecode, at a call
// the called method.

const (
	// maxCounter bounds the instructions from the address to the end of a counter.
	maxCounter = 8
	// maxAhead bounds the instructions that make the address.
	maxAhead = 2
	maxData  = 32
)

type counterKind uint8

const (
	noCounter counterKind = iota
	countsBranch
	countsEntry
)

// counterAt returns the kind of the counter that an instruction is part of, and the address of the MethodData.
func (m *codeMap) counterAt(n int32) (kind counterKind, data uint64) {
	if m.list[n].kindOf == arch.KindCompare { // the comparison of the counted branch
		if next := m.wholeAddress(m.next(n)); next != notInCode && m.list[next].kindOf == arch.KindLong {
			if kind, data = m.counterAt(next); kind == countsBranch {
				return kind, data
			}
		}
	}
	n = m.wholeAddress(n)
	for begin, far := n, 0; far < maxCounter && begin != notInCode; begin, far = m.before(begin), far+1 {
		if far > 0 && m.list[begin].flow != arch.FlowNext && m.list[begin].flow != arch.FlowBranch {
			break
		}
		if m.list[begin].kindOf != arch.KindLong {
			continue
		}
		o, ok := m.operands(begin)
		if !ok || o.Constant == 0 {
			break
		}
		if kind = m.counterFrom(begin, far); kind != noCounter {
			return kind, o.Constant
		}
		break
	}
	return noCounter, 0
}

// wholeAddress returns the last of the instructions that make an address, if instruction n makes a part of it.
func (m *codeMap) wholeAddress(n int32) int32 {
	at := n
	for k := 0; m.cpu.ConstantsApart && k < maxAhead && at != notInCode && m.list[at].kindOf == arch.KindConst; k++ {
		if at = m.next(at); at != notInCode && m.list[at].kindOf == arch.KindLong {
			return at
		}
	}
	return n
}

// maxBase bounds the instructions from a constant to its use.
const maxBase = 32

// dataAt returns the address of a profile that an instruction uses: it loads the address into a register, accesses
// memory at an offset from it, or uses a value computed or loaded from it. It returns 0 if there is none.
func (m *codeMap) dataAt(n int32, isProfile func(data uint64) bool) uint64 {
	n = m.comparisonOf(m.wholeAddress(n))
	o, ok := m.operands(n)
	if !ok || o.Constant != 0 {
		if isProfile(o.Constant) {
			return o.Constant
		}
		return 0
	}
	if i := &m.list[n]; !handsOn(i, o) && i.kindOf != arch.KindCompare && !i.stores && i.flow != arch.FlowBranch {
		return 0
	}
	var way leftBehind
	for from, k := o.Reads, 0; from != 0 && k < maxBase; k++ {
		if n, ok = way.step(m, n); !ok || n == notInCode || m.list[n].flow == arch.FlowCall {
			break
		}
		if o, ok = m.operands(n); !ok {
			break
		}
		switch {
		case o.Writes&from == 0:
		case o.Constant != 0 && isProfile(o.Constant):
			return o.Constant
		case o.Constant == 0 && handsOn(&m.list[n], o):
			from = from&^o.Writes | o.Reads
		default:
			from &^= o.Writes
		}
	}
	return 0
}

// comparisonOf returns the comparison right before instruction n if n is a branch, otherwise n.
func (m *codeMap) comparisonOf(n int32) int32 {
	if n != notInCode && m.list[n].flow == arch.FlowBranch {
		if before := m.before(n); before != notInCode && m.list[before].kindOf == arch.KindCompare {
			return before
		}
	}
	return n
}

// handsOn reports whether an instruction makes a new value from a register: by a load from the address there, or by a
// computation.
func handsOn(i *instruction, o arch.Operands) bool {
	return i.base == arch.BaseOther && !i.stores || i.base == arch.BaseNone && (o.Computes || i.kindOf == arch.KindLong)
}

// counterFrom returns the kind of the counter that begins with the address at begin, if the counter has more than far
// instructions.
func (m *codeMap) counterFrom(begin int32, far int) counterKind {
	var code [maxCounter]*instruction
	n := begin
	for i := range code {
		if n = m.next(n); n == notInCode {
			return noCounter
		}
		code[i] = &m.list[n]
	}
	branches := func(i int) bool { return code[i].flow == arch.FlowBranch && code[i].jumps }
	loads := func(i int) bool { return code[i].loads && code[i].base == arch.BaseOther }
	stores := func(i int) bool { return code[i].stores && code[i].base == arch.BaseOther }
	switch {
	case m.cpu.ConstantsApart: // arm64 chooses the offset by csel
		compares := code[4].kindOf == arch.KindCompare && branches(5)
		switch {
		// Both offsets, csel, the load, the sum, the store, the branch. On arm64 the counter's offset is in a register,
		// so neither access has a known base.
		case code[0].kindOf == arch.KindConst && code[1].kindOf == arch.KindConst && code[5].stores && branches(6):
			return countsBranch
		case loads(0) && code[1].base == arch.BaseNone && stores(2) && code[0].disp == code[2].disp && compares &&
			far <= 6:
			return countsEntry
		}
	case code[0].kindOf == arch.KindConst && branches(1) && code[2].kindOf == arch.KindConst:
		if far <= 2 || loads(3) && stores(5) && branches(6) {
			return countsBranch
		}
	case loads(0) && code[1].base == arch.BaseNone && stores(2) && code[0].disp == code[2].disp &&
		(far <= 5 || far == 6 && code[4].kindOf == arch.KindCompare && branches(5)):
		return countsEntry
	}
	return noCounter
}

// countedIn returns the address of the MethodData whose counter an instruction is part of, 0 if it is part of none.
func (q *question) countedIn(n int32) uint64 {
	if kind, data := q.code.counterAt(n); kind != noCounter && q.vm.IsProfile(data) {
		return data
	}
	return q.code.dataAt(n, q.vm.IsProfile)
}

// counter returns the methods at a counter: those on the route with that MethodData.
func (p *place) counter() verdict {
	data := p.countedIn(p.n)
	if data == 0 {
		return verdict{}
	}
	by, questions := p.route(), 0
	find := func(chain []vmstructs.Scope) []vmstructs.Scope {
		for i := range chain {
			if questions++; questions > maxData {
				break
			}
			if p.vm.DataOf(chain[i].Method) == data {
				return chain[i:]
			}
		}
		return nil
	}
	v := verdict{find(by.scopes), profile.Certain}
	for i := range by.legs {
		switch other := find(by.legs[i].scopes); {
		case other == nil:
		case v.scopes == nil:
			v.scopes = other
		case !sameMethods(v.scopes, other):
			v.sure = profile.Likely // the method is inlined at two places on the route
		}
	}
	return v
}
