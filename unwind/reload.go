package unwind

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// C2 has more values than the CPU has registers. It keeps some on the stack, and loads a value right before the
// instruction that takes it (opto/reg_split.cpp, PhaseChaitin::Split). Such a load is of no bytecode. It has no record
// of its own, but that of what follows. So it counts for the instruction that takes the value.

// reloadedFor returns the instruction for which another one loads a value from the stack, notInCode if it does not, or
// nobody knows.
func (m *codeMap) reloadedFor(n int32) int32 {
	if n < 0 || int(n) >= len(m.list) {
		return notInCode
	}
	if i := &m.list[n]; i.kindOf != arch.KindCopy || i.base != arch.BaseStack || !i.loads {
		return notInCode
	}
	return m.taker(n)
}

// atReload returns the methods at the instruction for which another one loads a value from the stack, nil if they are
// not certain.
func (w *Walker) atReload(b *vmstructs.Blob, m *codeMap, n int32) []vmstructs.Scope {
	if b.Level != levelC2 {
		return nil
	}
	if to := m.reloadedFor(n); to != notInCode {
		return w.known(b, m, to, maxChain)
	}
	return nil
}
