package unwind

import (
	"goprof/profile"
)

// callStub is the frame between calling C++ and called Java.
var callStub = &profile.Func{Name: "call_stub"}

// maxCallStub bounds the call stub's frame: a method has at most 255 argument words.
const maxCallStub = 8 * (255 + 64)

// stepEntry walks the call stub's frame. The frame has all callee-saved registers. So the walk can continue through the
// native frames below by their unwind rules, without an anchor.
func (w *Walker) stepEntry() profile.Reason {
	w.emit(profile.Frame{Func: callStub, Kind: profile.Stub, BCI: -1})
	fp, known := w.fp()
	if !known || fp < w.cur.sp || fp-w.cur.sp > maxCallStub {
		return profile.EntryFrame
	}
	saved, ok1 := w.slot(fp, 0)
	pc, ok2 := w.slot(fp, 1)
	if !ok1 || !ok2 || w.vm.InCode(w.strip(pc)) {
		return profile.EntryFrame
	}
	w.noteWrapper(fp)
	w.toCaller(pc, fp+16, saved, true)
	for _, s := range w.cpu.CallStub.Saved {
		if v, ok := w.slot(fp, s.Slot); ok {
			w.cur.regs[s.Reg] = v
			w.cur.known |= 1 << s.Reg
		}
	}
	return profile.Whole
}

// noteWrapper keeps the anchor of the Java frames below the native frames that follow. The anchor is in the
// JavaCallWrapper, a C++ object on this stack (runtime/javaCalls.hpp).
func (w *Walker) noteWrapper(fp uint64) {
	w.anchor.SP = 0
	wrapper, ok := w.slot(fp, w.cpu.CallStub.CallWrapper)
	if !ok || wrapper < fp {
		return
	}
	in, ok := w.vm.WrapperAnchorOffset()
	if !ok {
		return
	}
	off := wrapper + in - w.snap.SP
	if off < uint64(len(w.snap.Stack)) {
		w.anchor, _ = w.vm.DecodeAnchor(w.snap.Stack[off:])
	}
}
