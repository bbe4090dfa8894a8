package leaf

import "goprof/arch"

// C1 records the bytecode of an instruction only if the instruction has a state: an access, a call, a check, or the
// beginning of a block (c1/c1_LIRAssembler.cpp, process_debug_info). Instructions without a state are copies between
// registers, copies to or from the stack, and constants for a call. They have the record of the next instruction that
// has a state. The shift that makes an address of a compressed reference is part of the load before it. The address of
// a profile is part of the counter: see counter.go.

// maxUnnoted bounds the instructions from one without a state to the one whose record it has.
const maxUnnoted = 12

// notedWith returns the instruction whose record C1 gives to instruction n, which has no state.
func (q *question) notedWith(n int32) int32 {
	m := q.code
	if n < 0 || int(n) >= len(m.list) {
		return n
	}
	if m.list[n].widens || m.cpu.ConstantsApart && m.list[n].kindOf == arch.KindLong && m.constant(n) == 0 {
		if before := m.before(n); before != notInCode && m.list[before].loads && m.list[before].base == arch.BaseOther {
			return before
		}
	}
	if cast := m.endsCast(n); cast != notInCode {
		return cast
	}
	at := n
	for range maxUnnoted {
		switch at = m.wholeAddress(at); {
		case m.list[at].kindOf == arch.KindLeave && m.list[n].kindOf == arch.KindLong:
			return n // the returned value
		case !m.list[at].isUnnoted() || q.vm.IsProfile(m.constant(at)):
			return at
		}
		if at = m.next(at); at == notInCode || int(at) >= len(m.list) || len(m.jumpsTo(at)) > 0 {
			break // other code leads here, too
		}
	}
	return n
}

// constant returns the 64-bit constant that an instruction puts into a register, 0 if there is none. An instruction
// that changes only part of a loaded register does not count: on arm64 the address of a class is made in this way.
func (m *codeMap) constant(n int32) uint64 {
	if m.list[n].kindOf != arch.KindLong {
		return 0
	}
	o, _ := m.operands(n)
	return o.Constant
}

// endsCast returns the branch of a cast to its slow path, for one of the two instructions behind that branch: a jump to
// the next instruction, or the copy of the object there (c1/c1_LIRAssembler_aarch64.cpp, emit_opTypeCheck). For any
// other instruction it returns notInCode.
func (m *codeMap) endsCast(n int32) int32 {
	if i := &m.list[n]; i.kindOf == arch.KindCopy && i.base == arch.BaseNone {
		n = m.before(n)
	}
	if n == notInCode || m.list[n].flow != arch.FlowJump || m.target(n) == notInCode || m.target(n) != m.next(n) {
		return notInCode
	}
	return m.branchBefore(m.next(n))
}

// isUnnoted reports whether an instruction has no state. A constant of 32 bits may belong to a bytecode, because C1
// makes the result of a comparison from two of them.
func (i *instruction) isUnnoted() bool {
	return i.flow == arch.FlowNext &&
		(i.kindOf == arch.KindCopy || i.kindOf == arch.KindLong || i.kindOf == arch.KindNop)
}
