package arm64

import (
	"encoding/binary"

	"goprof/arch"
)

// tracer is this CPU's part of reading code ahead. It executes a few instructions symbolically (those that move the
// stack pointer, the frame pointer, the link register, and words between registers and the stack) and steps over all
// others. Unlike on amd64, a call leaves the return address in the link register. So the return address is not on the
// stack until the code stores it there.
type tracer struct {
	*arch.Follower
	java arch.JavaRegs
	in   inst // the last one that was executed
}

// NewTracer makes a reader of code ahead.
func (code) NewTracer(java arch.JavaRegs) arch.Tracer {
	t := &tracer{java: java}
	t.Follower = arch.NewFollower(t, 4)
	return t.Follower
}

// Step executes one instruction, and returns how the path goes on.
func (t *tracer) Step(on *arch.State) arch.Way {
	s, in, at := state{on}, &t.in, on.PC
	if !decode(t.Code[at:], in) {
		return arch.WayEnds
	}
	s.PC += 4
	switch in.Op {
	case opOther:
		s.clobber(in.Writes)
	case opAdd:
		if t.takesCallersSP(at) {
			return arch.WayEnds
		}
		s.set(in.Rd, plus(s.get(in.Rn), in.Imm))
		if in.Rd == x29 && in.Rn == regSP && in.Imm == 0 && t.Entry && s.enters() {
			return arch.WayBuildsFrame
		}
	case opAddReg, opSubReg:
		s.set(in.Rd, s.addReg(in))
	case opAnd:
		// The code aligns its stack pointer. Either the stack pointer is set back from another register later, or it
		// was aligned before. Otherwise the code could not find its own frame again.
		s.set(in.Rd, s.get(in.Rn))
	case opMov:
		s.set(in.Rd, s.get(in.Rm))
	case opConst:
		s.set(in.Rd, constant(in.Imm))
	case opKeep:
		s.set(in.Rd, s.keep(in))
	case opNear:
		s.set(in.Rd, t.near(at, in))
	case opAddr:
		s.set(in.Rd, someAddress)
	case opSign: // the walk strips signatures
	case opLoad:
		s.access(in, t.postStep(s, in))
	case opStore:
		s.access(in, t.postStep(s, in))
		if t.Entry && t.storesSenderSP(in) {
			return arch.WayBuildsFrame
		}
	case opCond:
		if to, ok := t.Inside(at, in.Imm); ok {
			t.Branch(s.State, to)
		}
	case opBranch:
		to, ok := t.Inside(at, in.Imm)
		if !ok {
			return arch.WayJumps
		}
		s.PC = to
	case opCall:
		s.afterCall()
	case opJump:
		to := s.get(in.Rn)
		switch near := to.Kind == arch.Value && (to.Reg == nearReg || to.Reg == codeReg) && to.Off%4 == 0; {
		case near && !t.ToWhole():
			s.PC = uint32(to.Off) // or some instructions earlier: the last round of an unrolled loop
		case isConstant(to): // a direct jump to a far target
			return arch.WayJumps
		default:
			return arch.WayJumpsAnyhow
		}
	case opRet:
		return arch.WayReturns
	default:
		return arch.WayEnds
	}
	return arch.WayGoesOn
}

// near returns the address that an opNear makes.
func (t *tracer) near(at uint32, in *inst) arch.Loc {
	if to, ok := t.Inside(at, in.Imm); ok && to%4 == 0 {
		return arch.RegPlus(codeReg, int32(to))
	}
	return someAddress
}

// takesCallersSP reports whether the code here sets the stack pointer from its caller's frame pointer before it
// returns. Up to JDK 17 code does so, on one of two paths, if the caller of a method handle handles an exception
// (c1_Runtime1_aarch64.cpp, handle_exception_from_callee and generate_unwind_exception). The value equals the present
// stack pointer, because interpreted callees have restored it. So both paths go on with the same stack pointer.
func (t *tracer) takesCallersSP(at uint32) bool {
	const movSPFP = 0x910003bf
	var next inst
	return binary.LittleEndian.Uint32(t.Code[at:]) == movSPFP && decode(t.Code[at+4:], &next) &&
		(next.Op == opRet || next.Op == opJump)
}

// postStep returns what an indexPostReg adds to its base. The code that saves all registers loads that number before
// its stores (macroAssembler_aarch64.cpp, push_CPU_state), and a sample may lie between the two.
func (t *tracer) postStep(s state, in *inst) arch.Loc {
	by := s.get(in.Rm)
	if in.Index != indexPostReg || by != arch.RegPlus(in.Rm, 0) {
		return by
	}
	var before inst
	for at := t.Start; at >= 4 && t.Start-at < 4*arch.MaxSlots && decode(t.Code[at-4:], &before); at -= 4 {
		switch {
		case before.Op == opConst && before.Rd == in.Rm:
			return constant(before.Imm)
		case before.Op != opStore && before.Op != opLoad && before.Op != opAdd:
			return by
		}
	}
	return by
}

// enters reports whether the frame pointer has just been set to the place where it and the return address are saved
// (macroAssembler_aarch64.cpp, enter).
func (s state) enters() bool {
	sp := s.Regs[regSP]
	fp, ok := s.Stored(sp)
	_, ok2 := s.Stored(plus(sp, 8))
	return ok && ok2 && fp.Kind != arch.Unknown
}

// storesSenderSP reports whether the interpreter has stored its caller's stack pointer. This word is the last one that
// a walk of its frame needs (templateInterpreterGenerator_aarch64.cpp, generate_fixed_frame).
func (t *tracer) storesSenderSP(in *inst) bool {
	// It is stored together with a zero. Code that saves all registers makes other pairs. The register's contents do
	// not matter: up to JDK 17 a collector's barrier may have called C before that.
	return in.Pair && !in.Narrow && in.Index == indexOffset && in.Rn == regSP && in.Rd == zr &&
		int(in.Rt2) == t.java.SenderSP
}
