package unwind

import (
	"bytes"

	"goprof/process"
	"goprof/profile"
)

// isSigreturn reports whether pc is in the code to which a signal's handler returns. A handler's return address is the
// beginning of that code. A stopped thread (exact) is at its last instruction. isSigreturn is for CPUs on which unwind
// rules do not lead to the interrupted code. It checks only code without rules, and code whose rules are marked as a
// signal frame's.
func (w *Walker) isSigreturn(pc uint64, exact bool, row *process.Row) bool {
	want := w.cpu.Sigreturn
	if len(want) == 0 || row != nil && !row.Signal {
		return false
	}
	beginsAt := func(pc uint64) bool {
		code := w.code[:len(want)]
		return w.t.Read(pc, code) == nil && bytes.Equal(code, want)
	}
	call := uint64(len(want) - len(w.cpu.SyscallInst)) // its last instruction
	return beginsAt(pc) || exact && beginsAt(pc-call)
}

// interrupted moves the cursor to the code that a signal has interrupted. The kernel has stored all its registers on
// the stack.
func (w *Walker) interrupted() profile.Reason {
	c := &w.cur
	saved, ok := w.stackBytes(c.sp+uint64(w.cpu.SigRegs), w.cpu.PrstatusSize)
	if !ok {
		return w.beyond()
	}
	regs := c.regs
	if _, ok := w.cpu.DecodeRegs(saved, &regs); !ok {
		return profile.NoUnwindInfo
	}
	c.regs, c.known = regs, ^uint64(0)
	c.arrive(regs[w.cpu.PC], regs[w.cpu.SP])
	c.exact, c.byRules = true, true
	return profile.Whole
}
