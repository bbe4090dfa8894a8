package unwind

import (
	"goprof/profile"
	"goprof/vmstructs"
)

// stepDeopt walks the blobs that replace a compiled frame by interpreter frames
// (runtime/sharedRuntime_*.cpp, generate_deopt_blob and generate_uncommon_trap_blob).
//
// They call C++ twice. In the first call the compiled frame still stands below the
// blob's own. In the second, empty interpreter frames stand there, linked and with
// their return addresses, but their methods are still in the thread's vframeArray.
func (w *Walker) stepDeopt(b *vmstructs.Blob) profile.Reason {
	w.emit(profile.Frame{Func: w.stubFunc(b, w.cur.pc), Kind: profile.Stub, BCI: -1})
	if w.cur.exact {
		return w.tracedDeopt(b)
	}
	if c, ok := w.sizedCaller(b); ok && w.compiledReturn(c.pc) {
		return w.goTo(c)
	}
	return w.skeletons()
}

// tracedDeopt asks the code of a blob that is not in a call. Its frame may be of any size there,
// and the words where its caller's address would lie at a call are those of other frames.
func (w *Walker) tracedDeopt(b *vmstructs.Blob) profile.Reason {
	r := w.exitAt(b, w.cur.pc)
	if r.ok {
		if c, ok := w.evalExit(r.exit, false); ok && w.plausible(c.pc) {
			return w.goTo(c)
		}
	}
	// While registers are saved the whole frame stands, at the frame pointer and of its size
	// (sharedRuntime_x86.cpp, RegisterSaver::save_live_registers).
	fp, known := w.fp()
	if c, ok := w.sizedCaller(b); ok && known && r.framed && fp+16 == c.sp {
		if c.pc == 0 { // an exception brought it here: the address has still to be fetched from the thread
			c.pc = w.vm.ThrownAt(w.snap.Side)
		}
		if w.compiledReturn(c.pc) {
			return w.goTo(c)
		}
	}
	return profile.Deoptimizing
}

// compiledReturn reports whether pc returns into compiled Java.
func (w *Walker) compiledReturn(pc uint64) bool {
	pc = w.strip(pc)
	if !w.vm.InCode(pc) || w.vm.InInterpreter(pc) {
		return false
	}
	b, err := w.vm.Blob(pc)
	return err == nil && b.Kind == vmstructs.Nmethod && (b.HasPcDesc(pc) || isDeoptHandler(b, pc))
}

// skeletons walks interpreter frames that have not been filled in yet.
func (w *Walker) skeletons() profile.Reason {
	fp, known := w.fp()
	if !known || len(w.snap.Side) == 0 {
		return profile.Deoptimizing
	}
	unpacking, err := w.vm.VFrames(w.snap)
	if err != nil {
		return profile.Deoptimizing
	}
	// Without an array they have been filled in, and are frames like any other.
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
		return profile.Deoptimizing // the array was of another frame when it was read
	}
	return w.goTo(c)
}

// linked reads the links of the frame at fp. plain: it has no sender sp slot.
func (w *Walker) linked(fp uint64, senderSP int, plain bool) (caller, bool) {
	saved, ok1 := w.slot(fp, 0)
	pc, ok2 := w.slot(fp, 1)
	sp, ok3 := fp+16, true
	if !plain {
		sp, ok3 = w.slot(fp, senderSP)
	}
	if sp <= fp && w.vm.Interp().Operands && w.framed(w.strip(pc)) {
		sp = fp + 16
	}
	return caller{pc: pc, sp: sp, fp: saved, fpKnown: true}, ok1 && ok2 && ok3 && sp > fp
}
