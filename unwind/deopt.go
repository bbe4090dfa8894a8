package unwind

import (
	"goprof/profile"
	"goprof/vmstructs"
)

// stepDeopt walks the blobs that replace a compiled frame with interpreter frames (runtime/sharedRuntime_*.cpp,
// generate_deopt_blob and generate_uncommon_trap_blob).
//
// These blobs call C++ twice. During the first call the compiled frame is still there, below the blob's own frame.
// During the second call, empty interpreter frames are there instead. They are linked and have their return addresses,
// but their methods are still in the thread's vframeArray.
func (w *Walker) stepDeopt(b *vmstructs.Blob) profile.Reason {
	w.emit(profile.Frame{Func: w.stubFunc(b, w.cur.pc), Kind: profile.Stub, BCI: -1})
	if w.cur.exact {
		return w.tracedDeopt(b)
	}
	if c, ok := w.sizedCaller(b, w.cur.sp); ok && w.compiledReturn(c.pc) {
		return w.goTo(c)
	}
	return w.skeletons()
}

// tracedDeopt reads the code ahead in a blob that is not in a call. Then the blob's frame may have any size.
func (w *Walker) tracedDeopt(b *vmstructs.Blob) profile.Reason {
	r := w.exitAt(b, w.cur.pc)
	if r.ok {
		if c, ok := w.evalExit(r.exit, false); ok && w.plausible(c.pc) {
			return w.goTo(c)
		}
	}
	if c, ok := w.savingRegisters(b); ok && r.framed && w.compiledReturn(c.pc) {
		return w.goTo(c)
	}
	return w.replacing()
}

// savingRegisters finds the caller of a blob that is saving registers, or has just done so. The frame pointer points to
// the blob's frame (sharedRuntime_x86.cpp, RegisterSaver::save_live_registers).
func (w *Walker) savingRegisters(b *vmstructs.Blob) (caller, bool) {
	fp, known := w.fp()
	if !known || fp < w.cur.sp {
		return caller{}, false
	}
	c, ok := w.linked(fp, 0, true)
	size := w.cur.sp + uint64(max(b.FrameSize, 0))*8
	if ok && c.pc == 0 && c.sp <= size {
		// An exception led to the blob, which has not yet fetched the return address from the thread.
		c.pc = w.vm.ThrownAt(w.snap.Side)
		return c, true
	}
	return c, ok && c.sp == size
}

// replacing finds the caller of a compiled frame while interpreter frames replace it. The replacement begins when the
// JVM has computed the interpreter frames. It ends with the second call, when they are on the stack. Until then the
// thread's vframeArray has the interpreter frames and their return address.
func (w *Walker) replacing() profile.Reason {
	if len(w.snap.Side) == 0 {
		return profile.Deoptimizing
	}
	unpacking, err := w.vm.VFrames(w.snap)
	if err != nil || len(unpacking.Frames) == 0 || unpacking.CallerSP < w.cur.sp {
		return profile.Deoptimizing
	}
	c := caller{pc: unpacking.CallerPC, sp: unpacking.CallerSP}
	if !w.plausible(w.strip(c.pc)) {
		return profile.Deoptimizing
	}
	c.fp, c.fpKnown = w.linkAbove(c.sp, len(unpacking.Frames)+1)
	for _, f := range unpacking.Frames {
		w.proof.Method(f.Method)
		w.emit(profile.Frame{Func: w.method(f.Method), Kind: profile.Interpreted, Line: f.Line, BCI: f.BCI})
	}
	return w.goTo(c)
}

// linkAbove returns the caller's frame pointer. It follows the saved frame pointers of the frames that are being built,
// up to the first that is not below sp.
func (w *Walker) linkAbove(sp uint64, frames int) (uint64, bool) {
	fp, known := w.fp()
	for ; known && fp >= w.cur.sp && fp < sp && frames > 0; frames-- {
		fp, known = w.slot(fp, 0)
	}
	return fp, known && fp >= sp
}

func (w *Walker) compiledReturn(pc uint64) bool {
	pc = w.strip(pc)
	if !w.vm.InCode(pc) || w.vm.InInterpreter(pc) {
		return false
	}
	b, err := w.vm.Blob(pc)
	return err == nil && b.Kind == vmstructs.Nmethod && (b.HasPcDesc(pc) || isDeoptHandler(b, pc))
}

// skeletons walks interpreter frames that are still empty.
func (w *Walker) skeletons() profile.Reason {
	fp, known := w.fp()
	if !known || len(w.snap.Side) == 0 {
		return profile.Deoptimizing
	}
	unpacking, err := w.vm.VFrames(w.snap)
	if err != nil {
		return profile.Deoptimizing
	}
	// Without an array, the frames are complete and the walk continues as usual.
	layout := w.vm.Interp()
	c := caller{fp: fp}
	if c, known = w.linked(fp, layout.SenderSP, true); !known {
		return profile.Deoptimizing
	}
	for _, f := range unpacking.Frames {
		if !w.vm.InInterpreter(w.strip(c.pc)) {
			return profile.Deoptimizing
		}
		w.goTo(c)
		w.proof.Method(f.Method)
		w.emit(profile.Frame{Func: w.method(f.Method), Kind: profile.Interpreted, Line: f.Line, BCI: f.BCI})
		if c, known = w.linked(c.fp, layout.SenderSP, false); !known {
			return profile.Deoptimizing
		}
	}
	if len(unpacking.Frames) > 0 && c.sp != unpacking.CallerSP {
		return profile.Deoptimizing // the array belonged to another frame when it was read
	}
	return w.goTo(c)
}

// linked reads the caller of the frame at fp. plain: the frame has no slot for the caller's sp.
func (w *Walker) linked(fp uint64, senderSP int, plain bool) (caller, bool) {
	saved, ok1 := w.slot(fp, 0)
	pc, ok2 := w.slot(fp, 1)
	sp, ok3 := fp+16, true
	if !plain {
		sp, ok3 = w.slot(fp, senderSP)
	}
	if sp <= fp && w.vm.Interp().OperandSP && w.framed(w.strip(pc)) {
		sp = fp + 16
	}
	return caller{pc: pc, sp: sp, fp: saved, fpKnown: true}, ok1 && ok2 && ok3 && sp > fp
}
