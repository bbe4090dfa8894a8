package unwind

import "goprof/arch"

// C1 notes where an instruction comes from only if it has a state: an access, a call, a check, or the begin of a block
// (c1/c1_LIRAssembler.cpp, process_debug_info). What has none is recorded with what follows. Copies between registers,
// those to and from the stack, and the constants for a call have none. The shift that makes an address of a compressed
// reference is part of the load before it.

// maxUnnoted bounds the instructions to the one with which another one is noted.
const maxUnnoted = 12

// notedWith returns the instruction with which C1 notes another one.
func (m *codeMap) notedWith(n int32) int32 {
	if n < 0 || int(n) >= len(m.list) {
		return n
	}
	if before := m.before(n); before != notInCode && m.list[n].widens && m.list[before].loads &&
		m.list[before].base == arch.BaseOther {
		return before
	}
	at := n
	for range maxUnnoted {
		if !m.list[at].isUnnoted() {
			return at
		}
		if at = m.next(at); at == notInCode || int(at) >= len(m.list) || len(m.jumpsTo(at)) > 0 {
			break // code comes from elsewhere, too
		}
	}
	return n
}

// isUnnoted reports whether an instruction has no state. A constant of 32 bits may be that of a bytecode: C1 makes
// results of comparisons from two of them.
func (i *instruction) isUnnoted() bool {
	return i.flow == arch.FlowNext &&
		(i.kindOf == arch.KindCopy || i.kindOf == arch.KindLong || i.kindOf == arch.KindNop)
}
