package unwind

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// stepInterpreted walks a frame of the template interpreter. The frame pointer points to the frame at all times, except
// while a frame is being built (method entries) or removed.
func (w *Walker) stepInterpreted() profile.Reason {
	codelet, ok := w.vm.Codelet(w.cur.pc)
	if !ok {
		return w.interpreterFrame(false)
	}
	exit, traced := w.codeletExit(codelet)
	if traced {
		if why, done := w.unframed(codelet, exit); done {
			return why
		}
	}
	return w.interpreterFrame(codelet.Role == vmstructs.MethodEntry)
}

// codeletExit reads the codelet's code ahead if the method's frame may be incomplete: in method entries, and near a
// return. At calls the frame is complete, with one exception: after an exception has left a method, a call asks the VM
// where the exception is handled.
func (w *Walker) codeletExit(c vmstructs.Codelet) (arch.Exit, bool) {
	if c.Role != vmstructs.MethodEntry && !w.cur.exact && c.Role != vmstructs.Throwing {
		return arch.Exit{}, false
	}
	pc := w.cur.pc
	if r, ok := w.exits[pc]; ok {
		return r.exit, r.ok
	}
	var r exitResult
	code := w.vm.CodeletCode(c)
	if c.Role == vmstructs.MethodEntry || w.cpu.AfterLeave(code, pc-c.Begin) {
		exit, err := w.tracer.TraceEntry(code, c.Begin, pc)
		r = exitResult{exit: exit, ok: err == nil}
	}
	w.exits[pc] = r
	return r.exit, r.ok
}

// unframed handles interpreter code whose frame is not made yet, or was already removed. done is false if the code
// ahead shows that the frame is complete.
func (w *Walker) unframed(codelet vmstructs.Codelet, e arch.Exit) (why profile.Reason, done bool) {
	if (e.FrameBuilt || e.Jump) && w.returnsWithin(codelet, e) {
		return 0, false // the link register still has the address after a call inside the entry
	}
	if e.FrameBuilt {
		// Only method entries make frames for methods.
		if codelet.Role != vmstructs.MethodEntry || w.beforeBarrier(codelet, e) {
			return 0, false
		}
		return w.beforeFrame(e), true
	}
	if e.Jump && !e.Indirect && codelet.Role == vmstructs.MethodEntry &&
		(e.RA.Kind == arch.AtMem && int(e.RA.Reg) == w.cpu.SP || e.RA == w.cpu.AtEntry.RA) {
		// An intrinsic entry on its way to the entry for all methods (CRC32's slow path).
		return w.beforeFrame(e), true
	}
	if !w.frameGone(codelet, &e) {
		return 0, false
	}
	c, ok := w.evalExit(e, false)
	if !ok && codelet.Role == vmstructs.MethodEntry && e.Jump && e.RA.Kind == arch.AtMem {
		// An intrinsic entry calls a stub, so the sender sp register is unknown. Callers that are found by their frame
		// pointer do not need it.
		e.SP = arch.Loc{Kind: arch.Value, Reg: uint8(w.cpu.SP), Off: e.RA.Off + 8}
		if c, ok = w.evalExit(e, false); !ok || !w.framed(c.pc) {
			return profile.BadInterpreted, true
		}
	}
	if !ok || !w.plausible(c.pc) || c.pc >= codelet.Begin && c.pc < codelet.End {
		return 0, false // to call the VM, a codelet calls an address within itself (MacroAssembler::call_VM)
	}
	if codelet.Role == vmstructs.MethodEntry {
		w.emitLeafEntry(codelet)
	}
	if codelet.Role == vmstructs.Branching && e.Jump && !w.emitReplaced(e) {
		return profile.BadInterpreted, true
	}
	why = w.goTo(c)
	w.cur.frameless = codelet.Role == vmstructs.MethodEntry && e.RA.Kind == arch.Value
	return why, true
}

// returnsWithin reports whether an exit leads back into the codelet itself.
func (w *Walker) returnsWithin(codelet vmstructs.Codelet, e arch.Exit) bool {
	if codelet.Role != vmstructs.MethodEntry {
		return false
	}
	ra, ok := w.eval(e.RA)
	pc := w.strip(ra)
	return ok && pc >= codelet.Begin && pc < codelet.End
}

// frameGone reports whether code returns after its frame was removed. If the code has popped the return address, it
// returns by a jump, and frameGone stores that address in the exit.
func (w *Walker) frameGone(codelet vmstructs.Codelet, e *arch.Exit) bool {
	if !e.Jump {
		return e.RA.Kind != arch.AtMem || int(e.RA.Reg) != w.cpu.FP
	}
	if codelet.Role == vmstructs.Throwing && w.thrownAt(*e) {
		e.Target = e.ThrownAt
	}
	if w.popped(e.Target) {
		*e = e.Popped(e.Target)
		return true
	}
	// On-stack replacement: a branch jumps to compiled code, after it has popped the return address and pushed it again
	// (templateTable_*.cpp, branch).
	return codelet.Role == vmstructs.Branching && w.popped(e.RA)
}

// thrownAt reports whether code removes a frame because of an exception. Such code continues at an address from the VM,
// and keeps the return address of the frame ("in between activations", templateInterpreterGenerator_*.cpp,
// generate_throw_exception).
func (w *Walker) thrownAt(e arch.Exit) bool {
	pc, ok := w.eval(e.ThrownAt)
	return ok && e.Indirect && w.plausible(w.strip(pc))
}

// popped reports whether l is a return address that was removed from the stack, not one that is still in a frame.
func (w *Walker) popped(l arch.Loc) bool {
	switch l.Kind {
	case arch.AtMem:
		return int(l.Reg) == w.cpu.SP
	case arch.Value:
		if l.Off != 0 || int(l.Reg) == w.cpu.SP || int(l.Reg) == w.cpu.FP {
			return false
		}
		pc, ok := w.eval(l)
		return ok && w.plausible(pc) && !w.isCodeletStart(pc)
	}
	return false
}

// isCodeletStart reports whether a codelet begins at pc. A jump there is not a return.
func (w *Walker) isCodeletStart(pc uint64) bool {
	c, ok := w.vm.Codelet(pc)
	return ok && c.Begin == pc
}

// beforeFrame walks a method entry that has not made its frame yet (templateInterpreterGenerator_*.cpp,
// generate_normal_entry).
func (w *Walker) beforeFrame(e arch.Exit) profile.Reason {
	w.emitEntered()
	c, ok := w.evalExit(e, true)
	if !ok || !w.plausible(c.pc) {
		return profile.BadInterpreted
	}
	return w.goTo(c)
}

// emitEntered emits the method that is being entered, which is in a register.
func (w *Walker) emitEntered() bool {
	if !w.isKnown(w.java.Method) {
		return false
	}
	m, err := w.vm.Method(w.cur.regs[w.java.Method])
	if err != nil {
		return false
	}
	w.emitInterpreted(m, 0)
	return true
}

// emitLeafEntry emits an intrinsic entry (math, CRC32 ...) that never makes a frame.
func (w *Walker) emitLeafEntry(c vmstructs.Codelet) {
	if w.cur.exact && w.emitEntered() {
		return
	}
	w.emit(profile.Frame{Func: w.codeletFunc(c), Kind: profile.Stub, BCI: -1})
}

func (w *Walker) codeletFunc(c vmstructs.Codelet) *profile.Func {
	if s, ok := w.stubs[c.Begin]; ok && s.blob == nil {
		return s.fn
	}
	fn := &profile.Func{Name: "Interpreter (" + w.vm.Describe(c) + ")"}
	w.stubs[c.Begin] = stubSite{fn: fn}
	return fn
}

func (w *Walker) emitInterpreted(m *vmstructs.Method, bci int32) {
	w.proof.Method(m)
	f := profile.Frame{Func: w.method(m), Kind: profile.Interpreted, BCI: bci}
	if m.Native {
		f.Kind, f.BCI = profile.NativeMethod, -1
	} else {
		f.Line = m.Line(bci)
	}
	w.emit(f)
}

// interpreterFrame walks the frame at the frame pointer (frame_*.hpp). building: its lower slots may not have been
// pushed yet.
func (w *Walker) interpreterFrame(building bool) profile.Reason {
	fp, known := w.fp()
	if !known || fp < w.cur.sp || !w.inCopy(fp) {
		return profile.BadInterpreted
	}
	fp = w.outOfBarrier(fp)
	l := w.vm.Interp()
	if building && w.cur.exact && w.cur.sp > fp+uint64(int64(l.Method)*8) {
		if !w.emitEntered() {
			return profile.BadMethod
		}
	} else if why := w.emitFramed(fp, l); why != profile.Whole {
		return why
	}
	w.framePointer, w.frameAt = fp, len(w.out.Frames)-1
	w.keepInterpreted(fp, l)
	sender := l.SenderSP
	pushed := w.cur.sp <= fp+uint64(int64(sender)*8)
	c, ok := w.linked(fp, sender, !pushed)
	if !ok {
		return profile.BadInterpreted
	}
	if !pushed && building && w.isKnown(w.java.SenderSP) {
		// Adapters have made room below a compiled caller's frame, so that frame does not begin at fp+16.
		if c.sp = w.cur.regs[w.java.SenderSP]; c.sp <= fp || !w.inCopy(c.sp) {
			return profile.BadInterpreted
		}
	}
	if l.OperandSP {
		c.called, _ = w.slot(fp, sender)
	}
	w.goTo(c)
	w.cur.interpreted = true
	return profile.Whole
}

// InterpretedFrame describes where an interpreted frame of a stack is.
type InterpretedFrame struct {
	At         int    // the frame's index in the stack
	FP, Method uint64 // its frame pointer, and the Method* in its slot
}

// InterpretedFrames returns the frames of the last walk, if KeepInterpreted is set. The next walk overwrites them.
func (w *Walker) InterpretedFrames() []InterpretedFrame { return w.interpreted }

func (w *Walker) keepInterpreted(fp uint64, l arch.InterpLayout) {
	if !w.KeepInterpreted {
		return
	}
	if method, ok := w.slot(fp, l.Method); ok {
		w.interpreted = append(w.interpreted, InterpretedFrame{At: len(w.out.Frames) - 1, FP: fp, Method: method})
	}
}

func (w *Walker) emitFramed(fp uint64, l arch.InterpLayout) profile.Reason {
	addr, ok := w.slot(fp, l.Method)
	if !ok {
		return profile.BadInterpreted
	}
	m, err := w.vm.Method(addr)
	if err != nil {
		return profile.BadMethod
	}
	if m.Native {
		w.emitInterpreted(m, -1)
		return profile.Whole
	}
	bci, ok := w.bci(fp, l, m)
	if !ok { // another method may now be at that address
		if m, err = w.vm.MethodNow(addr); err != nil {
			return profile.BadMethod
		}
		w.proof.Method(m)
		if bci, ok = w.bci(fp, l, m); !ok {
			return profile.BadInterpreted
		}
	}
	if !w.cur.exact && !w.calledAt(fp, l) {
		return profile.BadInterpreted
	}
	w.emitInterpreted(m, bci)
	return profile.Whole
}

// calledAt reports whether the frame at fp ends at the walk's position. If it does not, the frame pointer is wrong.
// Before the interpreter calls Java, it stores its stack pointer in the frame, and clears it afterwards
// (interp_masm_x86.cpp, prepare_to_jump_from_interpreted; JDK 25 in words from fp, JDK 21 still the address). Only an
// adapter's alignment and the arguments of a compiled callee are between that pointer and the callee.
//
// On aarch64 the pointer is that of the operands, and the frame ends at the machine's stack pointer below. But if
// deoptimisation has made the frame, it ends at its operands, and the stored machine's stack pointer is lower, or not
// set at all up to JDK 17 (abstractInterpreter_aarch64.cpp, layout_activation).
func (w *Walker) calledAt(fp uint64, l arch.InterpLayout) bool {
	slot, ok := w.slot(fp, l.LastSP)
	at := vmstructs.SlotAddress(fp, slot)
	const aligned, most, operands = 4, 255, 256 // in words; a method has at most 255 parameters (JVMS 4.3.3)
	arguments, sp := most, w.cur.sp
	if w.cur.calledSP != 0 {
		sp = w.cur.calledSP
	}
	if w.cur.interpreted {
		arguments = 0
	} else if w.cur.callee != nil {
		arguments = min(w.cur.callee.Parameters(), most)
	}
	endsAt := func(at uint64, arguments int) bool {
		return at+aligned*8 >= sp && at <= sp+uint64(arguments+aligned)*8
	}
	switch {
	case !ok:
		return false
	case at == 0 || endsAt(at, arguments):
		return true
	case !l.OperandSP:
		return false
	}
	if machine, set := w.extendedSP(fp, at, l); set {
		return endsAt(machine, arguments)
	}
	return endsAt(at, arguments+operands)
}

// extendedSP returns the machine's stack pointer that the interpreter stored in the frame at fp, whose operands end at
// operands. Where deoptimisation does not set the slot, it may have any value.
func (w *Walker) extendedSP(fp, operands uint64, l arch.InterpLayout) (sp uint64, ok bool) {
	if l.ExtendedSP == 0 {
		return 0, false
	}
	slot, in := w.slot(fp, l.ExtendedSP)
	sp = vmstructs.SlotAddress(fp, slot)
	return sp, in && sp&15 == 0 && sp <= operands && sp >= w.cur.sp-8*maxArguments
}

// hasJustReturned reports whether the interpreter is at the code after a call, and has not restored its registers yet.
func (w *Walker) hasJustReturned() bool {
	if !w.cur.exact {
		return false
	}
	c, ok := w.vm.Codelet(w.cur.pc)
	return ok && c.Role == vmstructs.ReturnEntry
}

// bci finds the bytecode index. The interpreter keeps its bytecode pointer in a register that C++ preserves, and saves
// it to the frame only before calls. So bci prefers the register, if its value is known and points into the method.
// Directly after a return the register may still have the callee's pointer (aarch64;
// templateInterpreterGenerator_*.cpp, generate_return_entry_for).
func (w *Walker) bci(fp uint64, l arch.InterpLayout, m *vmstructs.Method) (int32, bool) {
	if w.isKnown(w.java.BCP) && !w.hasJustReturned() {
		if bci, ok := m.BCI(w.cur.regs[w.java.BCP]); ok {
			return bci, true
		}
	}
	if w.cur.sp > fp+uint64(int64(l.BCP)*8) {
		return 0, true // not pushed yet: the method has not begun
	}
	bcp, ok := w.slot(fp, l.BCP)
	if !ok {
		return 0, false
	}
	if bci, ok := w.vm.SavedBCI(m, bcp); ok {
		return bci, true
	}
	return w.replacedAt(m, bcp)
}
