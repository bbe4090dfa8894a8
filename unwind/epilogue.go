package unwind

import (
	"goprof/arch"
	"goprof/process"
	"goprof/profile"
)

// Some unwind tables do not describe how an epilogue removes a frame: those written by hand, and those of code built
// with GCC's -fno-asynchronous-unwind-tables. Between the epilogue's first pop and its return, such a table leads to a
// stale word, which may look like a return address. The code shows the right address: a return follows within a few
// instructions, with no call before it. If table and code disagree, the walk believes the code, provided that its
// return address follows a call.

// epilogueBytes is the size of the code that is read ahead. It is enough to restore all registers and return.
const epilogueBytes = 64

// returnAhead finds out how the code at pc returns. It returns false unless the return is near, with no call before it.
func (w *Walker) returnAhead(pc uint64) (arch.Exit, bool) {
	if r, ok := w.returns[pc]; ok {
		return r.exit, r.ok
	}
	var r exitResult
	if code := w.code[:epilogueBytes]; w.t.Read(pc, code) == nil {
		exit, err := w.tracer.Trace(code, pc, pc, 0)
		r = exitResult{exit: exit, ok: err == nil && !exit.Jump && !exit.Calls && !exit.WritesRA && !exit.FrameBuilt}
	}
	if len(w.returns) >= maxSites {
		clear(w.returns)
	}
	w.returns[pc] = r
	return r.exit, r.ok
}

// applyCode moves to the caller that the code ahead shows, if the code contradicts the row. Otherwise it returns false.
func (w *Walker) applyCode(row *process.Row) bool {
	if !w.cur.exact || row.Signal {
		return false
	}
	exit, ok := w.returnAhead(w.cur.pc)
	if !ok {
		return false
	}
	c, ok := w.evalExit(exit, false)
	if !ok || !w.behindCall(c.pc) {
		return false
	}
	was := w.cur
	why, root := w.applyRow(row)
	byRow := w.cur
	w.cur = was
	if root || why == profile.Whole && byRow.pc == c.pc && byRow.sp == c.sp {
		return false
	}
	w.goTo(c)
	w.cur.known |= was.known & exit.Kept & w.cpu.CalleeSaved
	return true
}

func (w *Walker) behindCall(pc uint64) bool {
	if w.vm != nil && w.vm.InCode(pc) {
		return w.plausible(pc)
	}
	return w.native(pc, false) != nil && w.afterCall(pc, nil)
}
