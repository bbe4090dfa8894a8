package amd64

import "goprof/arch"

// tracer reads x86-64 code ahead. It executes a few instructions symbolically
// (those that move the stack pointer, the frame pointer, and words between registers
// and the stack) and steps over all others, until the code returns or jumps away.
//
// Code that HotSpot generates returns from wherever it is with a balanced stack, so
// any way to a return tells where the return address is. Calls leave the stack as it
// was. What cannot be followed (an indirect jump, a stack pointer of unknown origin)
// ends one way; another is tried.
type tracer struct {
	code       []byte
	base       uint64
	seen       []uint64 // one bit per byte of code
	todo       []state
	stopAtPush bool
	frame      int32                // where to stop: when this many bytes stand between sp and the caller's
	whole      func(pc uint64) bool // or where they are known to
	fallback   arch.Exit            // the first exit by a jump
	found      bool
}

// dwarf maps the machine's register numbers to DWARF's.
var dwarf = [16]uint8{rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi,
	r8, r9, r10, r11, r12, r13, r14, r15}

func (t *tracer) Trace(code []byte, base, pc uint64, frame int32) (arch.Exit, error) {
	t.stopAtPush, t.frame, t.whole = false, frame, nil
	return t.run(code, base, pc)
}

func (t *tracer) TraceTo(code []byte, base, pc uint64, frame int32, whole func(pc uint64) bool) (arch.Exit, error) {
	t.stopAtPush, t.frame, t.whole = false, frame, whole
	return t.run(code, base, pc)
}

func (t *tracer) TraceEntry(code []byte, base, pc uint64) (arch.Exit, error) {
	t.stopAtPush, t.frame, t.whole = true, 0, nil
	return t.run(code, base, pc)
}

func (t *tracer) run(code []byte, base, pc uint64) (arch.Exit, error) {
	if pc < base || pc-base >= uint64(len(code)) || uint64(len(code)) >= 1<<31 {
		return arch.Exit{}, arch.ErrNoCode
	}
	t.code, t.base, t.found = code, base, false
	t.forget()
	t.todo = t.todo[:0]
	var s state
	s.pc = uint32(pc - base)
	for i := range s.regs {
		s.regs[i] = arch.RegPlus(uint8(i), 0)
	}
	t.todo = append(t.todo, s)
	steps := 0
	for len(t.todo) > 0 && steps < arch.MaxSteps {
		s = t.todo[len(t.todo)-1]
		t.todo = t.todo[:len(t.todo)-1]
		if exit, ok := t.follow(&s, &steps); ok {
			return exit, nil
		}
	}
	if t.found {
		return t.fallback, nil
	}
	return arch.Exit{}, arch.ErrNoExit
}

// forget makes all of the code new.
func (t *tracer) forget() {
	words := len(t.code)/64 + 1
	if cap(t.seen) < words {
		t.seen = make([]uint64, words)
	}
	t.seen = t.seen[:words]
	clear(t.seen)
}

// isNew reports whether an offset is one of the code to which no way has led yet.
func (t *tracer) isNew(at uint32) bool {
	word, bit := at/64, uint64(1)<<(at%64)
	if int(at) >= len(t.code) || t.seen[word]&bit != 0 {
		return false
	}
	t.seen[word] |= bit
	return true
}

// follow goes one way until it returns or ends.
func (t *tracer) follow(s *state, steps *int) (arch.Exit, bool) {
	var in inst
	for ; *steps < arch.MaxSteps; *steps++ {
		if t.whole != nil && t.whole(t.base+uint64(s.pc)) {
			return s.sized(t.frame)
		}
		if !t.isNew(s.pc) {
			return arch.Exit{}, false
		}
		if !decode(t.code[s.pc:], &in) {
			return arch.Exit{}, false
		}
		at := s.pc
		s.pc += uint32(in.Len)
		switch t.step(s, &in, at) {
		case arch.WayEnds:
			return arch.Exit{}, false
		case arch.WayReturns:
			if t.whole != nil {
				return arch.Exit{}, false
			}
			exit := s.exit(int32(in.Imm))
			if exit.RA.Kind != arch.Unknown && exit.SP.Kind == arch.Value {
				return exit, true
			}
			return arch.Exit{}, false
		case arch.WayBuildsFrame:
			exit := s.exit(0)
			exit.FrameBuilt = true
			return exit, true
		case arch.WayGoesOn:
			if t.frame != 0 && t.whole == nil && !s.calls {
				if exit, ok := s.framed(t.frame, *steps); ok {
					return exit, true
				}
			}
		case arch.WayJumps:
			if t.whole != nil {
				if in.Op == 0xff {
					return s.sized(t.frame)
				}
				return arch.Exit{}, false
			}
			exit := s.exit(0)
			exit.Jump = true
			exit.Indirect = in.Op == 0xff
			if !in.Mem && exit.Indirect {
				exit.Target, exit.ThrownAt = arch.Told(s.get(in.RM)), arch.Told(s.regs[CPU.Java.ThrownAt])
			}
			if !t.found || exit.Indirect && !t.fallback.Indirect {
				t.fallback, t.found = exit, true
			}
			return arch.Exit{}, false
		}
	}
	return arch.Exit{}, false
}

// exit tells the state at a return (or where one would be) in terms of the start.
func (s *state) exit(popped int32) arch.Exit {
	sp := s.regs[rsp]
	_, writes := s.stored(sp)
	e := arch.Exit{
		RA: s.load(sp), SP: sp, FP: s.regs[rbp], Saved: s.saved,
		SenderSP: s.regs[CPU.Java.SenderSP], BCP: arch.Told(s.regs[CPU.Java.BCP]),
		Calls: s.calls, WritesRA: writes || s.patch,
	}
	if e.RA.Kind == arch.Unknown && sp.Kind == arch.Value && sp.Reg < arch.FirstToken {
		// The code ahead writes its own return address (exception stubs do); until then
		// the word is what it was.
		e.RA = arch.MemAt(sp.Reg, sp.Off)
	}
	below := sp
	below.Off -= 8
	e.Taken, e.End = s.load(below), sp
	e.SP.Off += 8 + popped
	if sp.Kind != arch.Value {
		e.SP, e.End = arch.Loc{}, arch.Loc{}
	}
	e.RA, e.SP, e.FP, e.Taken, e.SenderSP = arch.Told(e.RA), arch.Told(e.SP), arch.Told(e.FP), arch.Told(e.Taken), arch.Told(e.SenderSP)
	e.End = arch.Told(e.End)
	return e
}

// framed tells the exit of code that has just completed a frame of that size: from before the frame
// pointer was saved, or from right after it was pushed, when only rbp may be set before the stack
// pointer moves (-XX:+PreserveFramePointer). Later in a method, intrinsics move it by any amount.
func (s *state) framed(size int32, before int) (arch.Exit, bool) {
	sp := s.regs[rsp]
	if sp.Kind != arch.Value || sp.Reg != rsp || sp.Off >= 0 {
		return arch.Exit{}, false
	}
	switch sp.Off {
	case 8 - size:
		if s.load(arch.RegPlus(rsp, -8)) != (arch.RegPlus(rbp, 0)) {
			return arch.Exit{}, false
		}
	case 16 - size:
		if before > 1 {
			return arch.Exit{}, false
		}
	default:
		return arch.Exit{}, false
	}
	return s.sized(size)
}

// sized tells the exit of code whose whole frame has that size.
func (s *state) sized(size int32) (arch.Exit, bool) {
	sp := s.regs[rsp]
	if sp.Kind != arch.Value || sp.Reg != rsp || size < 16 {
		return arch.Exit{}, false
	}
	end := sp
	end.Off += size
	at := func(off int32) arch.Loc { return s.load(arch.RegPlus(rsp, end.Off+off)) }
	e := arch.Exit{RA: at(-8), SP: end, FP: at(-16), Calls: s.calls, FrameBuilt: true}
	if e.FP.Kind == arch.AtMem && e.FP.Off < 0 { // not stored yet: still in its register
		e.FP = s.regs[rbp]
	}
	e.RA, e.FP = arch.Told(e.RA), arch.Told(e.FP)
	return e, true
}

// step executes one instruction; at is its own offset, s.pc already the next one's.
func (t *tracer) step(s *state, in *inst, at uint32) arch.Way {
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
		v := s.load(s.regs[rsp])
		s.moveSP(8)
		s.set(in.RM, v)
		s.takeSavedSP()
	case op == 0x68, op == 0x6a, op == 0x9c: // push imm, pushf
		s.moveSP(-8)
		s.store(s.regs[rsp], arch.Loc{})
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
		s.regs[rsp] = s.regs[rbp]
		s.takeSavedSP()
		s.regs[rbp] = s.load(s.regs[rsp])
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
		if t.stopAtPush && s.regs[rbp] == s.regs[rsp] && !in.Mem {
			// Frame made: rbp = rsp. What lies above the saved rbp is the return address.
			s.regs[rbp] = s.load(s.regs[rsp])
			s.moveSP(8)
			return arch.WayBuildsFrame
		}
	}
	if s.regs[rsp].Kind != arch.Value {
		return arch.WayEnds
	}
	return arch.WayGoesOn
}

func (t *tracer) push(s *state, in *inst) arch.Way {
	v := s.get(in.RM)
	s.moveSP(-8)
	s.store(s.regs[rsp], v)
	return arch.WayGoesOn
}

func (t *tracer) branch(s *state, in *inst) {
	target, ok := t.target(s.pc, in)
	if !ok || len(t.todo) >= arch.MaxWays {
		return
	}
	t.todo = append(t.todo, *s)
	t.todo[len(t.todo)-1].pc = target
}

func (t *tracer) jump(s *state, in *inst) arch.Way {
	target, ok := t.target(s.pc, in)
	if !ok {
		return arch.WayJumps
	}
	s.pc = target
	return arch.WayGoesOn
}

func (t *tracer) call(s *state, in *inst) arch.Way {
	if in.Imm == 0 { // call of the next instruction: pushes an address to pop
		s.moveSP(-8)
		s.store(s.regs[rsp], arch.Loc{})
		return arch.WayGoesOn
	}
	s.afterCall()
	return arch.WayGoesOn
}

func (t *tracer) group5(s *state, in *inst) arch.Way {
	switch in.OpX {
	case 2, 3:
		s.afterCall()
	case 4, 5:
		return arch.WayJumps
	case 6: // push r/m
		v := s.operand(in)
		s.moveSP(-8)
		s.store(s.regs[rsp], v)
	default:
		s.clobber(in)
	}
	return arch.WayGoesOn
}

// arithImm: add, or, adc, sbb, and, sub, xor, cmp with an immediate.
func (s *state) arithImm(in *inst) {
	if in.OpX == 7 {
		return
	}
	if in.Mem {
		s.store(s.address(in), arch.Loc{})
		return
	}
	if in.OpX == 4 && dwarf[in.RM] == rsp {
		// and rsp, -16: either rsp is set back from another register later, or it was
		// aligned, for otherwise the code could not find its own frame again.
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

// newToken stands for a stack pointer of which nothing is known but itself.
func (s *state) newToken() arch.Loc {
	s.tokens++
	return arch.RegPlus(arch.FirstToken+s.tokens%64, 0)
}

// target is where a jump goes, if that is in the code.
func (t *tracer) target(next uint32, in *inst) (uint32, bool) {
	target := int64(next) + in.Imm
	return uint32(target), target >= 0 && target < int64(len(t.code))
}
