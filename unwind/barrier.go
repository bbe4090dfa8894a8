package unwind

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// With the collector Shenandoah, the interpreter's code has a barrier where it loads an object. To call C++, the
// barrier makes a second frame inside the interpreter's frame, only to save registers: push rbp; mov rbp, rsp. The
// barrier was not called, so there is no return address above its frame (JDK 25,
// gc/shenandoah/shenandoahBarrierSetAssembler_x86.cpp, load_reference_barrier; macroAssembler_x86.cpp,
// push_call_clobbered). The missing return address distinguishes it from a method's frame.

// beforeBarrier is for a method entry. It reports whether the frame that the code ahead makes is a barrier's. Then the
// method's own frame is already complete.
func (w *Walker) beforeBarrier(codelet vmstructs.Codelet, e arch.Exit) bool {
	if w.cpu.ReturnsInRegister {
		return w.ownFrameStands(codelet, e)
	}
	if c, ok := w.evalExit(e, true); ok && w.plausible(c.pc) {
		return false
	}
	fp, known := w.fp()
	if !known || fp < w.cur.sp || !w.hasCaller(fp) {
		return false
	}
	// A caller's frame also has a return address. But only this method's frame has the method that is in the register.
	method, ok := w.slot(fp, w.vm.Interp().Method)
	return ok && (!w.cur.exact || w.isKnown(w.java.Method) && method == w.cur.regs[w.java.Method])
}

// ownFrameStands is beforeBarrier for CPUs with a link register. There a return address proves nothing, because the
// link register always has one. The proof is that the frame at fp has the entered method and its caller's stack
// pointer, which are also in registers. After a call of C these registers have unknown contents. Then the link register
// has the address to which C returned, inside this entry (templateInterpreterGenerator_aarch64.cpp,
// generate_native_entry).
func (w *Walker) ownFrameStands(codelet vmstructs.Codelet, e arch.Exit) bool {
	fp, known := w.fp()
	if !known || fp < w.cur.sp {
		return false
	}
	lost := e.FrameBuilt && e.Calls && e.RA.Kind == arch.Unknown
	link := w.strip(w.cur.regs[w.cpu.LR])
	if !w.cur.exact || lost && link >= codelet.Begin && link < codelet.End {
		return w.hasMethod(fp)
	}
	l := w.vm.Interp()
	method, ok1 := w.slot(fp, l.Method)
	sender, ok2 := w.slot(fp, l.SenderSP)
	return ok1 && ok2 && method == w.cur.regs[w.java.Method] && (sender == w.cur.regs[w.java.SenderSP] || lost)
}

// outOfBarrier returns the frame pointer of the interpreter's frame in which a barrier made the frame at fp. It returns
// fp itself if the frame at fp is a method's.
func (w *Walker) outOfBarrier(fp uint64) uint64 {
	if w.hasCaller(fp) && (!w.cpu.ReturnsInRegister || w.hasMethod(fp)) {
		return fp
	}
	outer, ok := w.word(fp)
	if !ok || outer <= fp || !w.hasCaller(outer) {
		return fp
	}
	return outer
}

func (w *Walker) hasMethod(fp uint64) bool {
	addr, ok := w.slot(fp, w.vm.Interp().Method)
	if !ok {
		return false
	}
	_, err := w.vm.Method(addr)
	return err == nil
}

// hasCaller reports whether the frame at fp has a possible return address.
func (w *Walker) hasCaller(fp uint64) bool {
	pc, ok := w.slot(fp, 1)
	return ok && w.plausible(pc)
}
