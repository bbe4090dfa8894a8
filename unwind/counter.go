package unwind

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// C1 with profiling counts in a method's MethodData how often the method is entered, and how often each branch is
// taken. The address of the MethodData stands in the code, so such code tells whose it is:
//
//   - A branch (c1_LIRGenerator.cpp, profile_branch; c1_LIRAssembler_x86.cpp, cmove): the address; the offset of one
//     counter; a jump on the result of the comparison before; the offset of the other counter; the counter is loaded,
//     made one more without a change of the flags, and stored; then the branch itself.
//   - The entry of a method (c1_LIRGenerator.cpp, increment_event_counter_impl): the address; the counter is loaded,
//     made more, stored and masked; if that is zero, a jump to the VM.
//   - On arm64 the address takes three instructions, csel chooses between both offsets (c1_LIRAssembler_aarch64.cpp,
//     cmove), and the mask is compared with zero. Only by that comparison an entry differs from other counters.
//
// Other counters (of calls, of the types of receivers) are known by the address alone: it is in the register to which
// the counter's offset is added. C1 has no record of any of these, but of what follows: full records have an entry with
// what the method does first, and a call with the method that is called. The address says for whom is counted.

const (
	// maxCounter bounds the instructions from the address to the end of such code.
	maxCounter = 8
	// maxAhead bounds the instructions that make the address, where it takes several.
	maxAhead = 2
	// maxData bounds the methods that are asked for their MethodData.
	maxData = 32
)

// counterKind is what is counted.
type counterKind uint8

const (
	noCounter counterKind = iota
	countsBranch
	countsEntry
)

// counterAt returns what is counted by the code that an instruction is part of, and the address of the MethodData.
func (m *codeMap) counterAt(n int32) (kind counterKind, data uint64) {
	if m.list[n].kindOf == arch.KindCompare { // of the branch that is counted
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

// wholeAddress returns the last of the instructions that make an address, if another one makes a part of it.
func (m *codeMap) wholeAddress(n int32) int32 {
	at := n
	for k := 0; m.cpu.ConstantsApart && k < maxAhead && at != notInCode && m.list[at].kindOf == arch.KindConst; k++ {
		if at = m.next(at); at != notInCode && m.list[at].kindOf == arch.KindLong {
			return at
		}
	}
	return n
}

// maxBase bounds the instructions from a constant to the access to which it is the base.
const maxBase = 24

// dataAt returns the address of what may be a MethodData if an instruction puts it into a register, or accesses memory
// at an offset from it. 0: it does neither.
func (m *codeMap) dataAt(n int32) uint64 {
	n = m.wholeAddress(n)
	o, ok := m.operands(n)
	if !ok {
		return 0
	}
	if m.list[n].kindOf == arch.KindLong {
		return o.Constant
	}
	if m.list[n].base != arch.BaseOther {
		return 0
	}
	for bases, k := o.Reads, 0; bases != 0 && k < maxBase; k++ {
		if n = m.before(n); n == notInCode || m.list[n].flow != arch.FlowNext && m.list[n].flow != arch.FlowBranch {
			break
		}
		if o, ok = m.operands(n); !ok {
			break
		}
		if m.list[n].kindOf == arch.KindLong && o.Writes&bases != 0 {
			return o.Constant
		}
		bases &^= o.Writes
	}
	return 0
}

// counterFrom tells what is counted by the code that begins with the address, if so many instructions behind it are
// part of that code.
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
		// Both offsets, csel, the load, the sum, the store, the branch. The counter's offset is in a register there, so
		// neither access has a base that is told.
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

// countedIn returns the address of what may be the MethodData in which code counts that an instruction is part of, 0 if
// it counts nothing.
func (m *codeMap) countedIn(n int32) uint64 {
	if kind, data := m.counterAt(n); kind != noCounter {
		return data
	}
	return m.dataAt(n)
}

// atCounter returns the methods at code of C1's that counts, by those on the route that was just looked for. told are
// the methods that the route tells. nil: there is no such code, or its method is not on the route.
func (w *Walker) atCounter(b *vmstructs.Blob, m *codeMap, n int32, told []vmstructs.Scope) ([]vmstructs.Scope,
	profile.Certainty) {
	if b.Level != levelProfiled || n < 0 || int(n) >= len(m.list) {
		return nil, profile.Guessed
	}
	data := m.countedIn(n)
	if data == 0 {
		return nil, profile.Guessed
	}
	asked := 0
	find := func(chain []vmstructs.Scope) []vmstructs.Scope {
		for i := range chain {
			if asked++; asked > maxData {
				break
			}
			if w.vm.DataOf(chain[i].Method) == data {
				return chain[i:]
			}
		}
		return nil
	}
	if s := find(told); s != nil {
		return s, profile.Certain
	}
	for i := range w.legs {
		if s := find(w.legs[i].scopes); s != nil {
			return s, profile.Certain
		}
	}
	return nil, profile.Guessed
}
