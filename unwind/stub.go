package unwind

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// stepStub walks generated code that belongs to no method: runtime stubs, adapters,
// vtable stubs, intrinsics, method handle linkers, signature handlers.
func (w *Walker) stepStub(b *vmstructs.Blob) profile.Reason {
	if b.Kind == vmstructs.MethodHandleIntrinsic && b.Method != nil {
		w.emit(profile.Frame{Func: w.method(b.Method), Kind: profile.NativeMethod, BCI: -1})
	} else {
		w.emit(profile.Frame{Func: w.stubFunc(b, w.cur.pc), Kind: profile.Stub, BCI: -1})
	}
	if w.isReturnBarrier(b) {
		return profile.Continuation
	}
	c, ok := w.stubCaller(b)
	if !ok {
		return profile.StubFrame
	}
	return w.goTo(c)
}

// stubCaller finds where a stub returns to: by its frame size where it is in a call, by
// reading its code where it is not.
func (w *Walker) stubCaller(b *vmstructs.Blob) (caller, bool) {
	sized := b.FrameSize > 0 && (!w.cur.exact || b.FrameComplete >= 0 && w.cur.pc >= b.Begin+uint64(b.FrameComplete))
	if sized && !w.cur.exact {
		if c, ok := w.sizedCaller(b); ok && w.plausible(c.pc) {
			return c, true
		}
	}
	r := w.exitAt(b, w.cur.pc)
	if r.ok {
		if c, ok := w.evalExit(r.exit, b.Kind == vmstructs.Adapter); ok && w.plausible(c.pc) {
			return c, true
		}
	}
	if r.ok && r.exit.Indirect && r.exit.RA.Kind == arch.AtMem {
		if c, ok := w.evalExit(r.exit.Popped(), false); ok && w.plausible(c.pc) {
			return c, true
		}
	}
	if sized {
		if c, ok := w.sizedCaller(b); ok && w.plausible(c.pc) {
			return c, true
		}
	}
	if fp, known := w.fp(); known && r.framed && fp >= w.cur.sp {
		c, ok := w.linked(fp, 0, true)
		return c, ok && w.plausible(c.pc)
	}
	return caller{}, false
}

// isReturnBarrier tells the stub that a virtual thread's lowest thawed frame returns
// to: its callers are in the heap.
func (w *Walker) isReturnBarrier(b *vmstructs.Blob) bool {
	return b.Kind == vmstructs.StubRoutines && !w.cur.exact && w.vm.ReturnBarrier(b, w.cur.pc)
}
