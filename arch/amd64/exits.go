package amd64

import "goprof/arch"

// Exit returns the exit of a path. The last instruction says how the path ends.
func (t *tracer) Exit(at *arch.State, w arch.Way) arch.Exit {
	s, in := state{at}, &t.in
	if w == arch.WayReturns {
		return s.exit(int32(in.Imm))
	}
	e := s.exit(0)
	switch w {
	case arch.WayBuildsFrame:
		e.FrameBuilt = true
	case arch.WayJumps:
		e.Jump = true
	case arch.WayJumpsAnyhow:
		e.Jump, e.Indirect = true, true
		if in.Mem {
			e.Through = arch.Plain(s.load(s.address(in)))
		} else {
			e.Target, e.ThrownAt = arch.Plain(s.get(in.RM)), arch.Plain(s.Regs[java.ThrownAt])
		}
	}
	return e
}

// IsBetter reports whether e is preferred: an indirect jump is.
func (t *tracer) IsBetter(e, than *arch.Exit) bool { return e.Indirect && !than.Indirect }

// exit returns the state at a return (or where one would be) in terms of the start.
func (s state) exit(popped int32) arch.Exit {
	sp := s.Regs[rsp]
	_, writes := s.Stored(sp)
	e := arch.Exit{
		RA: s.load(sp), SP: sp, FP: s.Regs[rbp], Saved: s.Saved,
		SenderSP: s.Regs[java.SenderSP], BCP: arch.Plain(s.Regs[java.BCP]),
		Calls: s.Calls, WritesRA: writes || s.Patched,
	}
	if e.RA.Kind == arch.Unknown && sp.Kind == arch.Value && sp.Reg < arch.FirstToken {
		// The code ahead writes its own return address, as exception stubs do. RA is the word that is there until then.
		e.RA = arch.MemAt(sp.Reg, sp.Off)
	}
	below := sp
	below.Off -= 8
	e.Taken, e.End = s.load(below), sp
	e.SP.Off += 8 + popped
	if sp.Kind != arch.Value {
		e.SP, e.End = arch.Loc{}, arch.Loc{}
	}
	e.RA, e.SP, e.FP, e.Taken, e.SenderSP = arch.Plain(e.RA), arch.Plain(e.SP), arch.Plain(e.FP), arch.Plain(e.Taken),
		arch.Plain(e.SenderSP)
	e.End = arch.Plain(e.End)
	return e
}

// Framed returns the exit of code that has just completed a frame of that size. It believes the frame only if the code
// was followed from a place before the frame pointer was saved, or right after its push. In the second case the code
// may only set rbp (-XX:+PreserveFramePointer) before it moves the stack pointer. Later in a method, intrinsics move
// the stack pointer by any amount.
func (t *tracer) Framed(at *arch.State, size int32, before int) (arch.Exit, bool) {
	s := state{at}
	sp := s.Regs[rsp]
	if sp.Kind != arch.Value || sp.Reg != rsp || sp.Off >= 0 {
		return arch.Exit{}, false
	}
	switch sp.Off {
	case 8 - size:
		if s.load(arch.RegPlus(rsp, -8)) != arch.RegPlus(rbp, 0) {
			return arch.Exit{}, false
		}
	case 16 - size:
		if before > 1 {
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
	sp := s.Regs[rsp]
	if sp.Kind != arch.Value || sp.Reg != rsp || size < 16 {
		return arch.Exit{}, false
	}
	end := sp
	end.Off += size
	above := func(off int32) arch.Loc { return s.load(arch.RegPlus(rsp, sp.Off+size+off)) }
	e := arch.Exit{RA: above(-8), SP: end, FP: above(-16), Calls: s.Calls, FrameBuilt: true}
	if e.FP.Kind == arch.AtMem && e.FP.Off < 0 { // not stored yet: still in its register
		e.FP = s.Regs[rbp]
	}
	e.RA, e.FP = arch.Plain(e.RA), arch.Plain(e.FP)
	return e, true
}
