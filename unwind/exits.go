package unwind

import (
	"sync"

	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// exitResult is the result of a Tracer at one pc.
type exitResult struct {
	blob   *vmstructs.Blob // nil for code that never changes
	exit   arch.Exit
	ok     bool
	framed bool // the code does not return, but the frame pointer is that of the code's own frame at this pc
	// pushed is the number of bytes below the frame, if the code is in a call.
	pushed uint64
}

// exitAt finds out how a stub's code returns from pc.
func (w *Walker) exitAt(b *vmstructs.Blob, pc uint64) exitResult {
	return w.keptExit(b, pc, (*Walker).traceStub)
}

func (w *Walker) traceStub(code []byte, b *vmstructs.Blob, pc uint64, r *exitResult) {
	exit, err := w.tracer.Trace(code, b.Begin, pc, 0)
	r.exit, r.ok = exit, err == nil
	if pc >= b.Begin && pc-b.Begin < uint64(len(code)) {
		r.pushed = w.cpu.Pops(code[pc-b.Begin:])
	}
	if b.Kind != vmstructs.MethodHandleIntrinsic && (err != nil || exit.Jump) {
		w.stubFrame(code, pc-b.Begin, b.Begin, r)
	}
}

// scratches are lent for code that is traced: an agent has hundreds of walkers, and the blob of stubs is large.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// keptExit returns the result of trace for a pc in the code of b, and caches it.
func (w *Walker) keptExit(b *vmstructs.Blob, pc uint64,
	trace func(w *Walker, code []byte, b *vmstructs.Blob, pc uint64, r *exitResult)) exitResult {
	if r, ok := w.exits[pc]; ok && r.blob == b {
		return r
	}
	r := exitResult{blob: b}
	scratch := scratches.Get().(*[]byte)
	var err error
	if *scratch, err = w.vm.Code(b, *scratch); err == nil {
		trace(w, *scratch, b, pc, &r)
	}
	scratches.Put(scratch)
	w.exits[pc] = r
	return r
}

// traceMethod finds out from a method's code how it leaves its frame. Some code has no credible exit: an endless loop,
// a switch, code that leads only to an uncommon trap. Then traceMethod follows the code to the nearest pc at which the
// frame is certainly whole.
func (w *Walker) traceMethod(code []byte, b *vmstructs.Blob, pc uint64, r *exitResult) {
	exit, err := w.tracer.Trace(code, b.Begin, pc, buildsFrame(b, pc))
	r.exit, r.ok = exit, err == nil && leavesMethod(b, exit)
	if !r.ok && b.Kind == vmstructs.Nmethod && b.FrameSize > 0 {
		exit, err = w.tracer.TraceTo(code, b.Begin, pc, int32(b.FrameSize)*8, b.HasPcDesc)
		r.exit, r.ok = exit, err == nil
	}
}

// leavesMethod reports whether an exit is credible. A jump to a computed address is a switch. A jump to a known address
// is the exit of the return poll's stub or of exception unwinding, unless it follows a call that never returns. A stack
// pointer that an intrinsic has saved is that of the whole frame.
func leavesMethod(b *vmstructs.Blob, e arch.Exit) bool {
	if e.SP.Kind != arch.Unknown && e.SP.Reg == arch.SavedSP && e.SP.Off != int32(b.FrameSize)*8 {
		return false
	}
	return !e.Jump || !e.Indirect && (!e.Calls || e.SP.Off == int32(b.FrameSize)*8)
}

// maxPrologue bounds the distance from an OSR method's entry within which the method's frame may be incomplete.
const maxPrologue = 64

// buildsFrame returns the size of the frame that the code at pc may be building, or 0.
func buildsFrame(b *vmstructs.Blob, pc uint64) int32 {
	entering := pc < b.Begin+uint64(max(b.FrameComplete, 0)) || b.OSR && pc-b.OSREntry < maxPrologue
	if !entering || b.FrameSize < 2 {
		return 0
	}
	return int32(b.FrameSize) * 8
}

// stubFrame handles stubs that do not return but jump to a computed address (exception handling, deoptimisation). If
// such a stub makes a standard frame, the return address is on top of the stack before that, and above the frame
// afterwards.
func (w *Walker) stubFrame(code []byte, off, begin uint64, r *exitResult) {
	n := uint64(w.cpu.Enters(code))
	switch {
	case n == 0:
	case off < n:
		if exit, err := w.tracer.TraceEntry(code, begin, begin+off); err == nil && exit.FrameBuilt {
			r.exit, r.ok = exit, true
		}
	default:
		r.framed = !w.cpu.AfterLeave(code, off)
	}
}

// caller is the frame to which a frame returns.
type caller struct {
	pc, sp, fp uint64
	fpKnown    bool
	called     uint64 // cursor.calledSP, if it differs from sp
}

// eval computes a Loc with the cursor's registers. Memory below the stack pointer is not used, because it belonged to
// former frames.
func (w *Walker) eval(l arch.Loc) (uint64, bool) {
	if l.Kind == arch.Unknown || int(l.Reg) >= arch.MaxRegs || !w.isKnown(int(l.Reg)) {
		return 0, false
	}
	v := w.cur.regs[l.Reg] + uint64(int64(l.Off))
	if l.Kind == arch.AtMem {
		word, ok := w.word(v)
		return word, ok && v >= w.cur.sp
	}
	return v, true
}

// evalIn computes a Loc of an Exit. The Loc may be relative to a saved stack pointer, which must be higher in the
// copied stack.
func (w *Walker) evalIn(e *arch.Exit, l arch.Loc) (uint64, bool) {
	if l.Reg != arch.SavedSP {
		return w.eval(l)
	}
	saved, ok := w.eval(e.Saved)
	if !ok || saved <= w.cur.sp || !w.inCopy(saved) {
		return 0, false
	}
	switch saved += uint64(int64(l.Off)); l.Kind {
	case arch.Value:
		return saved, true
	case arch.AtMem:
		return w.word(saved)
	}
	return 0, false
}

// evalExit computes the caller that an Exit describes. moved: adapters or interpreter entries may have moved sp to make
// room for arguments. Then the sender sp register has a compiled caller's own sp. Interpreted callers and the call stub
// are found by their frame pointer, and any sp below it is sufficient.
func (w *Walker) evalExit(e arch.Exit, moved bool) (caller, bool) {
	pc, ok := w.evalIn(&e, e.RA)
	if !ok {
		return caller{}, false
	}
	pc = w.strip(pc)
	fp, fpKnown := w.evalIn(&e, e.FP)
	c := caller{pc: pc, fp: fp, fpKnown: fpKnown}
	framed := w.framed(pc)
	switch {
	case moved && !framed:
		c.sp, ok = w.evalIn(&e, e.SenderSP)
	case e.SP.Kind == arch.Unknown && framed:
		c.sp = w.cur.sp
	default:
		c.sp, ok = w.evalIn(&e, e.SP)
	}
	if framed && w.vm.Interp().OperandSP {
		if c.called = c.sp; moved {
			c.called, _ = w.evalIn(&e, e.SenderSP)
		}
	}
	if framed { // the sp may be below an argument that a linker has popped
		c.sp = max(c.sp, w.cur.sp)
		// or in the callee's frame
		if ra := e.RA; w.vm.Interp().OperandSP && ra.Kind == arch.AtMem && int(ra.Reg) == w.cpu.SP {
			c.sp = max(c.sp, w.cur.sp+uint64(int64(ra.Off))+8)
		}
	}
	return c, ok && c.sp >= w.cur.sp
}

// framed reports whether the frame to which pc belongs is found by its frame pointer.
func (w *Walker) framed(pc uint64) bool {
	return w.vm != nil && (w.vm.InInterpreter(pc) || pc == w.vm.CallStubReturn())
}

func (w *Walker) goTo(c caller) profile.Reason {
	why := w.toCaller(c.pc, c.sp, c.fp, c.fpKnown)
	w.cur.calledSP = c.called
	return why
}
