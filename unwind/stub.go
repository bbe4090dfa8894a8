package unwind

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// stepStub walks generated code that belongs to no method: runtime stubs, adapters, vtable stubs, intrinsics, method
// handle linkers, signature handlers.
func (w *Walker) stepStub(b *vmstructs.Blob) profile.Reason {
	if b.Kind == vmstructs.MethodHandleIntrinsic && b.Method != nil {
		w.emit(profile.Frame{Func: w.method(b.Method), Kind: profile.NativeMethod, BCI: -1})
	} else {
		w.emit(profile.Frame{Func: w.stubFunc(b, w.cur.pc), Kind: profile.Stub, BCI: -1})
	}
	if w.vm.InContinuationStub(b) {
		if !w.isReturnBarrier(b) && w.vm.Thaws(w.cur.pc) && w.thawing() {
			return w.carrierFrames()
		}
		return profile.Continuation // being thawed, or heapFrames has rejected the frames
	}
	c, ok := w.stubCaller(b)
	if !ok {
		return profile.StubFrame
	}
	bcp, hasBCP, kept := w.kept(b)
	why := w.goTo(c)
	w.cur.known |= kept
	if hasBCP {
		w.cur.regs[w.java.BCP] = bcp
		w.cur.known |= 1 << w.java.BCP
	}
	return why
}

// kept finds the interpreter's bytecode pointer among the registers that a stub restores or does not change. The
// interpreter calls some stubs as it calls C functions: it does not save the pointer to its frame first, and it keeps
// its return address in a register.
func (w *Walker) kept(b *vmstructs.Blob) (bcp uint64, hasBCP bool, kept uint64) {
	if b.Kind != vmstructs.StubRoutines {
		return 0, false, 0
	}
	r := w.exitAt(b, w.cur.pc)
	if !r.ok || r.exit.Jump {
		return 0, false, 0
	}
	bcp, hasBCP = w.evalIn(&r.exit, r.exit.BCP)
	return bcp, hasBCP, r.exit.Kept & w.cur.known
}

// stubCaller finds the frame to which a stub returns: by its frame size if the stub is in a call, elsewhere by its
// code. If the code continues in another frame without returning, the frame that the stub made at its beginning shows
// the caller.
func (w *Walker) stubCaller(b *vmstructs.Blob) (caller, bool) {
	r := w.exitAt(b, w.cur.pc)
	sized := b.FrameSize > 0 && !w.cur.exact
	if sized {
		if c, ok := w.sizedCaller(b, w.cur.sp+r.pushed); ok && w.plausible(c.pc) {
			return c, true
		}
	}
	unwinds := r.ok && r.exit.Indirect && w.vm.UnwindsException(b, w.cur.pc)
	if unwinds {
		if c, ok := w.unwinding(r.exit); ok {
			return c, true
		}
	}
	if b.Kind == vmstructs.Safepoint && r.ok && r.exit.WritesRA {
		c, ok := w.polled(r.exit)
		return c, ok && w.returnsTo(c.pc, false)
	}
	if r.ok && !unwinds {
		if c, ok := w.evalExit(r.exit, b.Kind == vmstructs.Adapter); ok && w.returnsTo(c.pc, r.exit.Jump) {
			return c, true
		}
	}
	if fp, known := w.fp(); known && r.framed && fp >= w.cur.sp {
		c, ok := w.linked(fp, 0, true)
		return c, ok && w.plausible(c.pc)
	}
	return caller{}, false
}

// polled finds the frame of a method that was stopped at a safepoint poll in its middle. The signal handler made the
// thread continue in a stub. The stub first makes room for its return address, and stores the address there before it
// calls the VM. Afterwards it may move the address past the poll (runtime/sharedRuntime_*.cpp, generate_handler_blob).
func (w *Walker) polled(e arch.Exit) (caller, bool) {
	e.RA = arch.Loc{Kind: arch.AtMem, Reg: e.SP.Reg, Off: e.SP.Off - 8}
	if !e.Calls {
		return w.evalExit(e, false)
	}
	pc, ok := w.vm.TrapPC(w.snap.Side)
	if !ok {
		return caller{}, false
	}
	sp, ok := w.evalIn(&e, e.SP)
	fp, fpKnown := w.evalIn(&e, e.FP)
	return caller{pc: pc, sp: sp, fp: fp, fpKnown: fpKnown}, ok && sp >= w.cur.sp
}

// unwinding finds the frame in which a stub continues when it unwinds an exception. The stub removes its own return
// address from the stack and jumps to a handler.
func (w *Walker) unwinding(e arch.Exit) (caller, bool) {
	for _, ra := range [...]arch.Loc{e.Taken, e.Target} {
		if c, ok := w.evalExit(e.Popped(ra), false); ok && w.returnsTo(c.pc, false) {
			return c, true
		}
	}
	return caller{}, false
}

// returnsTo reports whether generated code can return to pc. It can return to the address after a call. During the
// handling of an exception, it can also return to a handler in a method: the stubs for exceptions change their own
// return address.
func (w *Walker) returnsTo(pc uint64, jumps bool) bool {
	if w.plausible(pc) {
		return true
	}
	if jumps || !w.vm.InCode(pc) {
		return false
	}
	b, err := w.vm.Blob(pc)
	return err == nil && b.Kind == vmstructs.Nmethod && pc > b.Begin
}

// isReturnBarrier reports whether b is the stub to which a virtual thread's lowest thawed frame returns. The callers of
// that frame are in the heap.
func (w *Walker) isReturnBarrier(b *vmstructs.Blob) bool {
	return b.Kind == vmstructs.StubRoutines && !w.cur.exact && w.vm.ReturnBarrier(b, w.cur.pc)
}
