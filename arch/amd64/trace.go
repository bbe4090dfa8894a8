package amd64

import "goprof/arch"

// tracer is this CPU's part of reading code ahead. It executes a few instructions symbolically
// (those that move the stack pointer, the frame pointer, and words between registers
// and the stack) and steps over all others. Calls leave the stack as it was.
type tracer struct {
	*arch.Follower
	in inst // the last one that was executed
}

// NewTracer makes a reader of code ahead.
func (code) NewTracer(arch.JavaRegs) arch.Tracer {
	t := new(tracer)
	t.Follower = arch.NewFollower(t, 1)
	return t.Follower
}

// dwarf maps the machine's register numbers to DWARF's.
var dwarf = [16]uint8{rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi,
	r8, r9, r10, r11, r12, r13, r14, r15}

// Step executes one instruction, and returns how the path goes on.
func (t *tracer) Step(to *arch.State) arch.Way {
	s, in := state{to}, &t.in
	if !decode(t.Code[s.PC:], in) {
		return arch.WayEnds
	}
	s.PC += uint32(in.Len)
	if in.Vec || in.Map > 1 {
		s.clobberVector(in)
		return arch.WayGoesOn
	}
	if in.Map == 1 {
		return t.stepTwoByte(s, in)
	}
	switch op := in.Op; {
	case op >= 0x50 && op <= 0x57: // push r
		return t.push(s, in)
	case op >= 0x58 && op <= 0x5f: // pop r
		v := s.load(s.Regs[rsp])
		s.moveSP(8)
		s.set(in.RM, v)
		s.takeSavedSP()
	case op == 0x68, op == 0x6a, op == 0x9c: // push imm, pushf
		s.moveSP(-8)
		s.store(s.Regs[rsp], arch.Loc{})
	case op == 0x9d: // popf
		s.moveSP(8)
	case op == 0x8f: // pop m
		s.moveSP(8)
		if in.Mem {
			s.store(s.address(in), arch.Loc{})
		} else {
			s.set(in.RM, arch.Loc{})
		}
	case op >= 0x70 && op <= 0x7f, op >= 0xe0 && op <= 0xe3: // jcc, loop
		t.branch(s, in)
	case op == 0xe9, op == 0xeb: // jmp
		return t.jump(s, in)
	case op == 0xe8: // call
		return t.call(s, in)
	case op == 0xc3, op == 0xc2:
		return arch.WayReturns
	case op == 0xc9: // leave
		s.Regs[rsp] = s.Regs[rbp]
		s.takeSavedSP()
		s.Regs[rbp] = s.load(s.Regs[rsp])
		s.moveSP(8)
	case op == 0xcc, op == 0xf4, op == 0xcb, op == 0xca, op == 0xcf, op == 0xc8: // int3, hlt, far returns, enter
		return arch.WayEnds
	case op == 0xff:
		return t.group5(s, in)
	case op == 0x89 || op == 0x88: // mov r/m, r
		s.movStore(in)
		s.takeSavedSP()
	case op == 0x8b: // mov r, r/m
		s.movLoad(in)
		s.takeSavedSP()
	case op == 0x8d: // lea
		v := arch.Loc{}
		if in.W {
			v = s.address(in)
		}
		s.set(in.Reg, v)
	case op == 0x83, op == 0x81, op == 0x80:
		s.arithImm(in)
	default:
		s.clobber(in)
	}
	if op := in.Op; op == 0x8b || op == 0x89 {
		if t.Entry && s.Regs[rbp] == s.Regs[rsp] && !in.Mem {
			// Frame made: rbp = rsp. The return address lies above the saved rbp.
			s.Regs[rbp] = s.load(s.Regs[rsp])
			s.moveSP(8)
			return arch.WayBuildsFrame
		}
	}
	if s.Regs[rsp].Kind != arch.Value {
		return arch.WayEnds
	}
	return arch.WayGoesOn
}

func (t *tracer) push(s state, in *inst) arch.Way {
	v := s.get(in.RM)
	s.moveSP(-8)
	s.store(s.Regs[rsp], v)
	return arch.WayGoesOn
}

func (t *tracer) branch(s state, in *inst) {
	if to, ok := t.Inside(s.PC, in.Imm); ok {
		t.Branch(s.State, to)
	}
}

func (t *tracer) jump(s state, in *inst) arch.Way {
	to, ok := t.Inside(s.PC, in.Imm)
	if !ok {
		return arch.WayJumps
	}
	s.PC = to
	return arch.WayGoesOn
}

func (t *tracer) call(s state, in *inst) arch.Way {
	if in.Imm == 0 { // call of the next instruction: pushes an address to pop
		s.moveSP(-8)
		s.store(s.Regs[rsp], arch.Loc{})
		return arch.WayGoesOn
	}
	s.afterCall()
	return arch.WayGoesOn
}

func (t *tracer) group5(s state, in *inst) arch.Way {
	switch in.OpX {
	case 2, 3:
		s.afterCall()
	case 4, 5:
		return arch.WayJumpsAnyhow
	case 6: // push r/m
		v := s.operand(in)
		s.moveSP(-8)
		s.store(s.Regs[rsp], v)
	default:
		s.clobber(in)
	}
	return arch.WayGoesOn
}

// arithImm executes add, or, adc, sbb, and, sub, xor and cmp with an immediate.
func (s state) arithImm(in *inst) {
	if in.OpX == 7 {
		return
	}
	if in.Mem {
		s.store(s.address(in), arch.Loc{})
		return
	}
	if in.OpX == 4 && dwarf[in.RM] == rsp {
		// and rsp, -16: either rsp is set back from another register later, or it was aligned before. Otherwise the
		// code could not find its own frame again.
		return
	}
	v := s.get(in.RM)
	known := in.W && v.Kind == arch.Value && in.Imm == int64(int32(in.Imm))
	switch {
	case known && in.OpX == 0:
		v.Off += int32(in.Imm)
	case known && in.OpX == 5:
		v.Off -= int32(in.Imm)
	default:
		v = arch.Loc{}
	}
	s.set(in.RM, v)
}
