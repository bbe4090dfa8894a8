package unwind

import (
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
// reading its code where it is not, by the frame pointer if the code cannot be followed.
func (w *Walker) stubCaller(b *vmstructs.Blob) (caller, bool) {
	sized := b.FrameSize > 0 && (!w.cur.exact || b.FrameComplete >= 0 && w.cur.pc >= b.Begin+uint64(b.FrameComplete))
	if sized && !w.cur.exact {
		if c, ok := w.sizedCaller(b); ok && w.plausible(c.pc) {
			return c, true
		}
	}
	if exit, ok := w.exitAt(b, w.cur.pc); ok {
		if c, ok := w.evalExit(exit, b.Kind == vmstructs.Adapter); ok && w.plausible(c.pc) {
			return c, true
		}
	}
	if sized {
		if c, ok := w.sizedCaller(b); ok && w.plausible(c.pc) {
			return c, true
		}
	}
	return w.framedCaller()
}

// framedCaller takes the frame pointer for that of a frame made by the code at hand,
// and believes it only if what stands there is a call's return address into Java.
func (w *Walker) framedCaller() (caller, bool) {
	fp, known := w.fp()
	if !known || fp < w.cur.sp {
		return caller{}, false
	}
	saved, ok1 := w.slot(fp, 0)
	pc, ok2 := w.slot(fp, 1)
	if !ok1 || !ok2 || !w.vm.InCode(w.strip(pc)) || !w.plausible(pc) {
		return caller{}, false
	}
	return caller{pc: pc, sp: fp + 16, fp: saved, fpKnown: true}, true
}

// isReturnBarrier tells the stub that a virtual thread's lowest thawed frame returns
// to: its callers are in the heap.
func (w *Walker) isReturnBarrier(b *vmstructs.Blob) bool {
	return b.Kind == vmstructs.StubRoutines && !w.cur.exact && w.vm.ReturnBarrier(b, w.cur.pc)
}
