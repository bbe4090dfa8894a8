package unwind

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// exitResult is what a Tracer found at one pc.
type exitResult struct {
	exit arch.Exit
	ok   bool
}

// exitAt asks the code at pc, which lies in [begin, end), how it returns. The answer is
// kept for each pc until code changes.
func (w *Walker) exitAt(b *vmstructs.Blob, pc uint64) (arch.Exit, bool) {
	if r, ok := w.exits[pc]; ok {
		return r.exit, r.ok
	}
	if w.tracer == nil {
		return arch.Exit{}, false
	}
	var r exitResult
	if code, err := w.vm.Code(b, w.code); err == nil {
		w.code = code
		exit, err := w.tracer.Trace(code, b.Begin, pc)
		r = exitResult{exit, err == nil}
	}
	w.exits[pc] = r
	return r.exit, r.ok
}

// caller is where a frame returns to.
type caller struct {
	pc, sp, fp uint64
	fpKnown    bool
}

// eval computes a Loc with the cursor's registers.
func (w *Walker) eval(l arch.Loc) (uint64, bool) {
	if l.Kind == arch.Unknown || int(l.Reg) >= arch.MaxRegs || !w.isKnown(int(l.Reg)) {
		return 0, false
	}
	v := w.cur.regs[l.Reg] + uint64(int64(l.Off))
	if l.Kind == arch.AtMem {
		return w.word(v)
	}
	return v, true
}

// evalExit computes the caller that an Exit tells of. moved says that code on the way
// here may have moved sp to make room for arguments, as adapters and interpreter
// entries do; the caller's own sp is then in the register for it.
func (w *Walker) evalExit(e arch.Exit, moved bool) (caller, bool) {
	pc, ok := w.eval(e.RA)
	if !ok {
		return caller{}, false
	}
	sp, ok := w.eval(e.SP)
	if moved {
		if s, has := w.eval(e.SenderSP); has && s > w.cur.sp && w.inCopy(s-8) {
			sp, ok = s, true
		}
	}
	if !ok {
		return caller{}, false
	}
	fp, fpKnown := w.eval(e.FP)
	return caller{pc: pc, sp: sp, fp: fp, fpKnown: fpKnown}, true
}

// goTo moves the cursor to a caller.
func (w *Walker) goTo(c caller) profile.Reason {
	return w.toCaller(c.pc, c.sp, c.fp, c.fpKnown)
}
