package unwind

import (
	"goprof/profile"
	"goprof/vmstructs"
)

// compiledSite has the facts about one pc in compiled Java: the frames there, innermost first.
type compiledSite struct {
	blob   *vmstructs.Blob
	frames []profile.Frame
	why    profile.Reason // why the debug information is missing
}

func (w *Walker) stepCompiled(b *vmstructs.Blob) profile.Reason {
	if c, ok := w.behindBody(b); ok {
		return w.goTo(c)
	}
	c, ok := w.compiledCaller(b)
	if !ok {
		// A return address that does not follow a recorded call of the method does not show which of its inlined methods
		// called.
		if w.cur.exact || b.HasPcDesc(w.cur.pc) {
			w.emitCompiled(b, w.cur.pc, w.cur.exact)
		}
		return profile.BadCompiled
	}
	pc, exact := w.cur.pc, w.cur.exact
	if isDeoptHandler(b, pc) {
		// Deoptimisation has replaced the return address. The frame keeps the original one (runtime/frame.cpp,
		// frame::get_deopt_original_pc).
		orig, ok := w.word(w.cur.sp + uint64(int64(b.OrigPC)))
		if !ok || orig < b.Begin || orig >= b.End {
			w.emitCompiled(b, b.Begin, true)
			return profile.Deoptimizing
		}
		pc, exact = orig, false
	}
	if why := w.emitCompiled(b, pc, exact); why != profile.Whole {
		return why
	}
	w.goTo(c)
	w.cur.callee = b.Method
	return profile.Whole
}

func isDeoptHandler(b *vmstructs.Blob, pc uint64) bool {
	return pc != 0 && (pc == b.DeoptHandlers[0] || pc == b.DeoptHandlers[1])
}

// compiledCaller finds the caller of a compiled frame.
//
// At a recorded return address the frame is whole and its size is known. Anywhere else the frame may be incomplete,
// partly removed, or shifted by pushed arguments of a leaf call (frame_complete shows little, because the entry barrier
// comes before it). Then compiledCaller reads the code ahead. If the code does not show the caller, compiledCaller does
// not guess one.
func (w *Walker) compiledCaller(b *vmstructs.Blob) (caller, bool) {
	if !w.cur.exact && isWhole(b, w.cur.pc) {
		return w.sizedCaller(b, w.cur.sp)
	}
	if w.cur.exact && w.cur.pc == b.VerifiedEntry {
		return w.javaCaller(w.atEntry())
	}
	if w.cur.exact && inStubs(b, w.cur.pc) { // in a handler, see behindBody
		return w.javaCaller(w.sizedCaller(b, w.cur.sp))
	}
	if r := w.keptExit(b, w.cur.pc, (*Walker).traceMethod); r.ok {
		if c, ok := w.javaCaller(w.evalExit(r.exit, false)); ok {
			return c, true
		}
	}
	if b.Kind != vmstructs.NativeWrapper || w.cur.exact {
		return caller{}, false
	}
	// The walk has reached a native method's wrapper through the frame anchor. The anchor has the sp of a whole frame, but
	// no frame pointer.
	return w.javaCaller(w.sizedCaller(b, w.cur.sp))
}

// atEntry finds the caller of code that has executed nothing yet. The code ahead may not show the caller: while HotSpot
// makes a method not entrant, the entry is a jump to itself (nativeInst_x86.cpp, NativeJump::patch_verified_entry).
func (w *Walker) atEntry() (caller, bool) {
	e := &w.cpu.AtEntry
	pc, ok1 := w.eval(e.RA)
	sp, ok2 := w.eval(e.SP)
	fp, known := w.eval(e.FP)
	return caller{pc: w.strip(pc), sp: sp, fp: fp, fpKnown: known}, ok1 && ok2
}

// javaCaller returns c. ok is false if c is not generated code, because only generated code calls compiled methods.
func (w *Walker) javaCaller(c caller, ok bool) (caller, bool) {
	return c, ok && w.vm.InCode(w.strip(c.pc)) && w.plausible(c.pc)
}

// isWhole reports whether a frame that returns to pc certainly has its full size. This is so at a record of the debug
// information, and in the handlers after the method's body. A native method's wrapper is excluded: when it locks a
// contended monitor, it pushes arguments before the call (sharedRuntime_x86_64.cpp, save_args).
func isWhole(b *vmstructs.Blob, pc uint64) bool {
	return b.Kind == vmstructs.Nmethod && (b.HasPcDesc(pc) || isDeoptHandler(b, pc) || inStubs(b, pc))
}

// inStubs reports whether pc is after the body of a method: in a stub of one of its static calls, or in one of its
// handlers for exceptions and deoptimisation. When HotSpot enters a handler, the frame is whole (code/nmethod.hpp,
// asm/codeBuffer.hpp: SECT_STUBS).
func inStubs(b *vmstructs.Blob, pc uint64) bool {
	return b.Kind == vmstructs.Nmethod && b.StubBegin != 0 && pc >= b.StubBegin
}

// behindBody finds the frame of a method's body for a thread that was interrupted in the code after the body. The
// return address of that code is in the same method: the body calls the stub of a static call, and the deoptimisation
// handler pushes an address of its own (c1_LIRAssembler_x86.cpp, emit_deopt_handler). Without behindBody, the walk
// would emit the method twice. It returns false if the thread is elsewhere.
func (w *Walker) behindBody(b *vmstructs.Blob) (caller, bool) {
	if !w.cur.exact || !inStubs(b, w.cur.pc) {
		return caller{}, false
	}
	c, ok := w.atEntry()
	ret := c.pc
	if !ok || ret < b.Begin || ret > b.End {
		return caller{}, false
	}
	for _, h := range b.DeoptHandlers {
		if h != 0 && w.cur.pc > h && ret >= h && ret <= w.cur.pc {
			c.pc = h
			return c, true
		}
	}
	return c, b.HasPcDesc(ret)
}

// sizedCaller finds the caller by the size of the frame, which begins at sp. The frame's uppermost word is the return
// address, and the word below is the saved frame pointer (cpu/*/frame_*.inline.hpp, sender_for_compiled_frame).
func (w *Walker) sizedCaller(b *vmstructs.Blob, sp uint64) (caller, bool) {
	if b.FrameSize < 1 {
		return caller{}, false
	}
	sp += uint64(b.FrameSize) * 8
	pc, ok1 := w.slot(sp, -1)
	fp, ok2 := w.slot(sp, -2)
	return caller{pc: pc, sp: sp, fp: fp, fpKnown: ok2}, ok1
}

// emitCompiled emits the methods at pc. If they cannot be found, it emits the method that owns the code, but only for
// the thread's topmost frame. In a lower frame, an inlined method may have made the call.
func (w *Walker) emitCompiled(b *vmstructs.Blob, pc uint64, exact bool) profile.Reason {
	site := w.site(b, pc, exact)
	if site.why != profile.Whole && !exact && len(w.out.Frames) > 0 {
		return site.why
	}
	if !exact && len(w.out.Frames) > 0 && len(site.frames) > 0 { // the top frame has the least certainty of all
		leaf := &w.out.Frames[0]
		leaf.Sure = max(leaf.Sure, site.frames[0].Sure)
	}
	for _, f := range site.frames {
		w.emit(f)
	}
	return site.why
}

// site returns the facts about a pc in compiled code, and caches them.
func (w *Walker) site(b *vmstructs.Blob, pc uint64, exact bool) *compiledSite {
	key := pc << 1
	if exact {
		key |= 1
	}
	if site, ok := w.sites[key]; ok && site.blob == b {
		return site
	}
	site := &compiledSite{blob: b}
	scopes, sure, err := w.scopes(b, pc, exact)
	if err != nil {
		site.why = profile.BadDebugInfo
		scopes = b.OwnScope()
	}
	for i, s := range scopes {
		if s.Method == nil {
			site.why = profile.BadDebugInfo
			break
		}
		kind := profile.Inlined
		if i == len(scopes)-1 {
			kind = ownerKind(b)
		}
		site.frames = append(site.frames, profile.Frame{
			Func: w.method(s.Method), Kind: kind, Level: b.Level, Line: s.Line, BCI: s.BCI, Sure: sure,
		})
	}
	w.sites[key] = site
	w.siteFrames += len(site.frames)
	return site
}

// scopes returns the methods at pc. exact reports that the thread was interrupted at that instruction, and is not in a
// call.
func (w *Walker) scopes(b *vmstructs.Blob, pc uint64, exact bool) ([]vmstructs.Scope, profile.Certainty, error) {
	switch {
	case b.Kind != vmstructs.Nmethod || !exact && (isWhole(b, pc) || w.vm.FullRecords(b)):
		s, err := w.vm.Scopes(b, pc, true)
		return s, profile.Certain, err
	case !exact:
		return w.leaf.Called(b, pc, w.calledName())
	case w.vm.FullRecords(b):
		return w.leaf.Recorded(b, pc)
	}
	s, sure := w.leaf.At(b, pc)
	return s, sure, nil
}

// calledName returns the name of the function that the frame at the cursor has called.
func (w *Walker) calledName() string {
	if n := len(w.out.Frames); n > 0 {
		return w.out.Frames[n-1].Func.Name
	}
	return ""
}

// ownerKind returns the kind of the method that owns a compiled frame. Levels are those of
// compiler/compilerDefinitions.hpp: 1 to 3 are C1's, 4 is C2's (or JVMCI's).
func ownerKind(b *vmstructs.Blob) profile.Kind {
	switch {
	case b.Kind == vmstructs.NativeWrapper:
		return profile.NativeMethod
	case b.Level >= 1 && b.Level <= 3:
		return profile.C1
	}
	return profile.C2
}
