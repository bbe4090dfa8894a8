package arm64

import "goprof/arch"

// Exit returns the exit of a path. The last instruction says how the path ends.
func (t *tracer) Exit(at *arch.State, w arch.Way) arch.Exit {
	s := state{at}
	switch w {
	case arch.WayReturns:
		return t.exit(s, s.get(t.in.Rn))
	case arch.WayBuildsFrame:
		return t.built(s)
	}
	return t.jumpsOut(s, w == arch.WayJumpsAnyhow)
}

// jumpsOut returns an exit by a jump. The scratch registers x8 and x9 hold an address of the interpreter or the
// beginning of a method, never a return address.
func (t *tracer) jumpsOut(s state, indirect bool) arch.Exit {
	e := t.exit(s, s.Regs[x30])
	e.Jump, e.Indirect = true, indirect
	if sender := arch.RegPlus(uint8(t.java.SenderSP), 0); e.SenderSP == sender && !t.hasSetSender() {
		e.SenderSP = e.SP
	}
	if !indirect {
		return e
	}
	if to := arch.Plain(s.get(t.in.Rn)); t.in.Rn != x8 && t.in.Rn != x9 {
		e.Target = to
	} else if to.Kind == arch.AtMem {
		e.Through = to
	}
	e.ThrownAt = arch.Plain(s.Regs[t.java.ThrownAt])
	if e.ThrownAt.Kind != arch.Unknown { // the link register may be stale: C2's exception blob does not load it
		e.Taken = e.ThrownAt
	}
	return e
}

// IsBetter prefers an indirect jump. If both jumps are of the same kind, it prefers the one whose stack pointer is
// known.
func (t *tracer) IsBetter(e, than *arch.Exit) bool {
	if e.Indirect != than.Indirect {
		return e.Indirect
	}
	return than.SP.Kind == arch.Unknown && e.SP.Kind != arch.Unknown
}

// hasSetSender reports whether the code before the start has already put its stack pointer into the register in which
// an adapter passes it on (sharedRuntime_aarch64.cpp, gen_c2i_adapter: the adapter does not branch after that).
func (t *tracer) hasSetSender() bool {
	var in inst
	for at := t.Start; at >= 4 && decode(t.Code[at-4:], &in); at -= 4 {
		switch in.Op {
		case opAdd:
			if int(in.Rd) == t.java.SenderSP && in.Rn == regSP {
				return true
			}
		case opBranch, opCond, opCall, opJump, opRet, opTrap:
			return false
		}
	}
	return false
}

// exit returns the state at a return to ra (or where one would be) in terms of the start.
func (t *tracer) exit(s state, ra arch.Loc) arch.Exit {
	sp := arch.Plain(s.Regs[regSP])
	e := arch.Exit{
		RA: arch.Plain(ra), SP: sp, End: sp, FP: arch.Plain(s.Regs[x29]), Saved: s.Saved, Taken: arch.Plain(s.Regs[x30]),
		SenderSP: arch.Plain(s.Regs[t.java.SenderSP]), BCP: arch.Plain(s.Regs[t.java.BCP]),
		Calls: s.Calls, WritesRA: s.Patched,
	}
	for r := x19; r < x29; r++ {
		if s.Regs[r] == arch.RegPlus(uint8(r), 0) {
			e.Kept |= 1 << r
		}
	}
	if at := s.RAAt; ra == s.Regs[x30] && at.Kind == arch.Value {
		_, writes := s.Stored(at)
		e.WritesRA = e.WritesRA || writes && e.RA.Kind == arch.Unknown
		if e.RA.Kind == arch.Unknown && at.Reg < arch.FirstToken && (at.Reg != regSP || at.Off >= 0) {
			// The code ahead writes its own return address, as exception stubs do. RA is the word that is there until
			// then.
			e.RA = arch.MemAt(at.Reg, at.Off)
		}
	}
	return e
}

// built returns the exit of code that has just made a standard frame: the words in the frame are the caller's.
func (t *tracer) built(s state) arch.Exit {
	fp := s.Regs[x29]
	e := t.exit(s, s.load(plus(fp, 8)))
	e.FP, e.SP = arch.Plain(s.load(fp)), arch.Plain(plus(fp, 16))
	e.FrameBuilt = true
	return e
}

// Framed returns the exit of code that has just completed a frame of that size. Such code has one of two forms
// (macroAssembler_aarch64.cpp, build_frame). It moves the stack pointer once and stores x29 and x30 at the frame's
// upper end. Or it pushes these two first, and after the push at most sets the frame pointer and loads a number.
func (t *tracer) Framed(at *arch.State, size int32, before int) (arch.Exit, bool) {
	s := state{at}
	sp := s.Regs[regSP]
	if sp.Kind != arch.Value || sp.Reg != regSP {
		return arch.Exit{}, false
	}
	const atMost = 4
	switch sp.Off {
	case -size, 0: // the path began before the frame, or right behind the sub
		ra, ok := s.Stored(plus(sp, int64(size)-8))
		fp, ok2 := s.Stored(plus(sp, int64(size)-16))
		if !ok || !ok2 || ra != arch.RegPlus(x30, 0) || fp != arch.RegPlus(x29, 0) {
			return arch.Exit{}, false
		}
	case 16 - size: // the path began right behind the push
		if before > atMost || size <= 16 {
			return arch.Exit{}, false
		}
	default:
		return arch.Exit{}, false
	}
	return t.Sized(at, size)
}

// Sized returns the exit of code whose whole frame has that size.
func (t *tracer) Sized(at *arch.State, size int32) (arch.Exit, bool) {
	s := state{at}
	sp := s.Regs[regSP]
	if sp.Kind != arch.Value || sp.Reg != regSP || size < 16 {
		return arch.Exit{}, false
	}
	end := plus(sp, int64(size))
	if end.Kind != arch.Value {
		return arch.Exit{}, false
	}
	return arch.Exit{RA: arch.Plain(s.load(plus(end, -8))), FP: arch.Plain(s.load(plus(end, -16))), SP: end, End: end,
		Calls: s.Calls, FrameBuilt: true}, true
}
