package arch

// amd64Tracer reads x86-64 code ahead. It executes a few instructions symbolically
// (those that move the stack pointer, the frame pointer, and words between registers
// and the stack) and steps over all others, until the code returns or jumps away.
//
// Code that HotSpot generates returns from wherever it is with a balanced stack, so
// any way to a return tells where the return address is. Calls leave the stack as it
// was. What cannot be followed (an indirect jump, a stack pointer of unknown origin)
// ends one way; another is tried.
type amd64Tracer struct {
	code       []byte
	base       uint64
	seen       []uint64 // one bit per byte of code
	todo       []amd64State
	stopAtPush bool
	frame      int32                // where to stop: when this many bytes stand between sp and the caller's
	whole      func(pc uint64) bool // or where they are known to
	fallback   Exit                 // the first exit by a jump
	found      bool
}

const (
	maxTraceSteps = 20000 // instructions on all ways together
	maxTraceWays  = 256
	maxTraceSlots = 24
	firstToken    = 64   // pseudo registers: stack pointers of unknown origin
	noReg         = 0xff // no address has it
)

// x86Dwarf maps the machine's register numbers to DWARF's.
var x86Dwarf = [16]uint8{amd64RAX, amd64RCX, amd64RDX, amd64RBX, amd64RSP, amd64RBP, amd64RSI, amd64RDI,
	amd64R8, amd64R9, amd64R10, amd64R11, amd64R12, amd64R13, amd64R14, amd64R15}

func (t *amd64Tracer) Trace(code []byte, base, pc uint64, frame int32) (Exit, error) {
	t.stopAtPush, t.frame, t.whole = false, frame, nil
	return t.run(code, base, pc)
}

func (t *amd64Tracer) TraceTo(code []byte, base, pc uint64, frame int32, whole func(pc uint64) bool) (Exit, error) {
	t.stopAtPush, t.frame, t.whole = false, frame, whole
	return t.run(code, base, pc)
}

func (t *amd64Tracer) TraceEntry(code []byte, base, pc uint64) (Exit, error) {
	t.stopAtPush, t.frame, t.whole = true, 0, nil
	return t.run(code, base, pc)
}

func (t *amd64Tracer) run(code []byte, base, pc uint64) (Exit, error) {
	if pc < base || pc-base >= uint64(len(code)) || uint64(len(code)) >= 1<<31 {
		return Exit{}, ErrNoCode
	}
	t.code, t.base, t.found = code, base, false
	t.forget()
	t.todo = t.todo[:0]
	var s amd64State
	s.pc = uint32(pc - base)
	for i := range s.regs {
		s.regs[i] = Loc{Value, uint8(i), 0}
	}
	t.todo = append(t.todo, s)
	steps := 0
	for len(t.todo) > 0 && steps < maxTraceSteps {
		s = t.todo[len(t.todo)-1]
		t.todo = t.todo[:len(t.todo)-1]
		if exit, ok := t.follow(&s, &steps); ok {
			return exit, nil
		}
	}
	if t.found {
		return t.fallback, nil
	}
	return Exit{}, ErrNoExit
}

// forget makes all of the code new.
func (t *amd64Tracer) forget() {
	words := len(t.code)/64 + 1
	if cap(t.seen) < words {
		t.seen = make([]uint64, words)
	}
	t.seen = t.seen[:words]
	clear(t.seen)
}

// isNew reports whether an offset is one of the code to which no way has led yet.
func (t *amd64Tracer) isNew(at uint32) bool {
	word, bit := at/64, uint64(1)<<(at%64)
	if int(at) >= len(t.code) || t.seen[word]&bit != 0 {
		return false
	}
	t.seen[word] |= bit
	return true
}

// follow goes one way until it returns or ends.
func (t *amd64Tracer) follow(s *amd64State, steps *int) (Exit, bool) {
	var in x86Inst
	for ; *steps < maxTraceSteps; *steps++ {
		if t.whole != nil && t.whole(t.base+uint64(s.pc)) {
			return s.sized(t.frame)
		}
		if !t.isNew(s.pc) {
			return Exit{}, false
		}
		if !decodeX86(t.code[s.pc:], &in) {
			return Exit{}, false
		}
		at := s.pc
		s.pc += uint32(in.Len)
		switch t.step(s, &in, at) {
		case wayEnds:
			return Exit{}, false
		case wayReturns:
			if t.whole != nil {
				return Exit{}, false
			}
			exit := s.exit(int32(in.Imm))
			if exit.RA.Kind != Unknown && exit.SP.Kind == Value {
				return exit, true
			}
			return Exit{}, false
		case wayBuildsFrame:
			exit := s.exit(0)
			exit.FrameBuilt = true
			return exit, true
		case wayGoesOn:
			if t.frame != 0 && t.whole == nil && !s.calls {
				if exit, ok := s.framed(t.frame, *steps); ok {
					return exit, true
				}
			}
		case wayJumps:
			if t.whole != nil {
				if in.Op == 0xff {
					return s.sized(t.frame)
				}
				return Exit{}, false
			}
			exit := s.exit(0)
			exit.Jump = true
			exit.Indirect = in.Op == 0xff
			if !in.Mem && exit.Indirect {
				exit.Target, exit.ThrownAt = told(s.get(in.RM)), told(s.regs[AMD64.Java.ThrownAt])
			}
			if !t.found || exit.Indirect && !t.fallback.Indirect {
				t.fallback, t.found = exit, true
			}
			return Exit{}, false
		}
	}
	return Exit{}, false
}

// exit tells the state at a return (or where one would be) in terms of the start.
func (s *amd64State) exit(popped int32) Exit {
	sp := s.regs[amd64RSP]
	_, writes := s.stored(sp)
	e := Exit{
		RA: s.load(sp), SP: sp, FP: s.regs[amd64RBP], Saved: s.saved,
		SenderSP: s.regs[AMD64.Java.SenderSP], BCP: told(s.regs[AMD64.Java.BCP]),
		Calls: s.calls, WritesRA: writes || s.patch,
	}
	if e.RA.Kind == Unknown && sp.Kind == Value && sp.Reg < firstToken {
		// The code ahead writes its own return address (exception stubs do); until then
		// the word is what it was.
		e.RA = Loc{AtMem, sp.Reg, sp.Off}
	}
	below := sp
	below.Off -= 8
	e.Taken, e.End = s.load(below), sp
	e.SP.Off += 8 + popped
	if sp.Kind != Value {
		e.SP, e.End = Loc{}, Loc{}
	}
	e.RA, e.SP, e.FP, e.Taken, e.SenderSP = told(e.RA), told(e.SP), told(e.FP), told(e.Taken), told(e.SenderSP)
	e.End = told(e.End)
	return e
}

// told is l for those outside, who know no tokens.
func told(l Loc) Loc {
	if l.Reg >= firstToken {
		return Loc{}
	}
	return l
}

// framed tells the exit of code that has just completed a frame of that size: from before the frame
// pointer was saved, or from right after it was pushed, when only rbp may be set before the stack
// pointer moves (-XX:+PreserveFramePointer). Later in a method, intrinsics move it by any amount.
func (s *amd64State) framed(size int32, before int) (Exit, bool) {
	sp := s.regs[amd64RSP]
	if sp.Kind != Value || sp.Reg != amd64RSP || sp.Off >= 0 {
		return Exit{}, false
	}
	switch sp.Off {
	case 8 - size:
		if s.load(Loc{Value, amd64RSP, -8}) != (Loc{Value, amd64RBP, 0}) {
			return Exit{}, false
		}
	case 16 - size:
		if before > 1 {
			return Exit{}, false
		}
	default:
		return Exit{}, false
	}
	return s.sized(size)
}

// sized tells the exit of code whose whole frame has that size.
func (s *amd64State) sized(size int32) (Exit, bool) {
	sp := s.regs[amd64RSP]
	if sp.Kind != Value || sp.Reg != amd64RSP || size < 16 {
		return Exit{}, false
	}
	end := sp
	end.Off += size
	at := func(off int32) Loc { return s.load(Loc{Value, amd64RSP, end.Off + off}) }
	e := Exit{RA: at(-8), SP: end, FP: at(-16), Calls: s.calls, FrameBuilt: true}
	if e.FP.Kind == AtMem && e.FP.Off < 0 { // not stored yet: still in its register
		e.FP = s.regs[amd64RBP]
	}
	e.RA, e.FP = told(e.RA), told(e.FP)
	return e, true
}

type way uint8

const (
	wayGoesOn way = iota
	wayEnds
	wayReturns
	wayJumps
	wayBuildsFrame
)

// step executes one instruction; at is its own offset, s.pc already the next one's.
func (t *amd64Tracer) step(s *amd64State, in *x86Inst, at uint32) way {
	if in.Vec || in.Map > 1 {
		s.clobberVector(in)
		return wayGoesOn
	}
	if in.Map == 1 {
		return t.stepTwoByte(s, in)
	}
	switch op := in.Op; {
	case op >= 0x50 && op <= 0x57: // push r
		return t.push(s, in)
	case op >= 0x58 && op <= 0x5f: // pop r
		v := s.load(s.regs[amd64RSP])
		s.moveSP(8)
		s.set(in.RM, v)
		s.takeSavedSP()
	case op == 0x68, op == 0x6a, op == 0x9c: // push imm, pushf
		s.moveSP(-8)
		s.store(s.regs[amd64RSP], Loc{})
	case op == 0x9d: // popf
		s.moveSP(8)
	case op == 0x8f: // pop m
		s.moveSP(8)
		if in.Mem {
			s.store(s.address(in), Loc{})
		} else {
			s.set(in.RM, Loc{})
		}
	case op >= 0x70 && op <= 0x7f, op >= 0xe0 && op <= 0xe3: // jcc, loop
		t.branch(s, in)
	case op == 0xe9, op == 0xeb: // jmp
		return t.jump(s, in)
	case op == 0xe8: // call
		return t.call(s, in)
	case op == 0xc3, op == 0xc2:
		return wayReturns
	case op == 0xc9: // leave
		s.regs[amd64RSP] = s.regs[amd64RBP]
		s.takeSavedSP()
		s.regs[amd64RBP] = s.load(s.regs[amd64RSP])
		s.moveSP(8)
	case op == 0xcc, op == 0xf4, op == 0xcb, op == 0xca, op == 0xcf, op == 0xc8: // int3, hlt, far returns, enter
		return wayEnds
	case op == 0xff:
		return t.group5(s, in)
	case op == 0x89 || op == 0x88: // mov r/m, r
		s.movStore(in)
		s.takeSavedSP()
	case op == 0x8b: // mov r, r/m
		s.movLoad(in)
		s.takeSavedSP()
	case op == 0x8d: // lea
		v := Loc{}
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
		if t.stopAtPush && s.regs[amd64RBP] == s.regs[amd64RSP] && !in.Mem {
			// Frame made: rbp = rsp. What lies above the saved rbp is the return address.
			s.regs[amd64RBP] = s.load(s.regs[amd64RSP])
			s.moveSP(8)
			return wayBuildsFrame
		}
	}
	if s.regs[amd64RSP].Kind != Value {
		return wayEnds
	}
	return wayGoesOn
}

func (t *amd64Tracer) push(s *amd64State, in *x86Inst) way {
	v := s.get(in.RM)
	s.moveSP(-8)
	s.store(s.regs[amd64RSP], v)
	return wayGoesOn
}

func (t *amd64Tracer) branch(s *amd64State, in *x86Inst) {
	target, ok := t.target(s.pc, in)
	if !ok || len(t.todo) >= maxTraceWays {
		return
	}
	t.todo = append(t.todo, *s)
	t.todo[len(t.todo)-1].pc = target
}

func (t *amd64Tracer) jump(s *amd64State, in *x86Inst) way {
	target, ok := t.target(s.pc, in)
	if !ok {
		return wayJumps
	}
	s.pc = target
	return wayGoesOn
}

func (t *amd64Tracer) call(s *amd64State, in *x86Inst) way {
	if in.Imm == 0 { // call of the next instruction: pushes an address to pop
		s.moveSP(-8)
		s.store(s.regs[amd64RSP], Loc{})
		return wayGoesOn
	}
	s.afterCall()
	return wayGoesOn
}

// afterCall forgets what a callee may change.
func (s *amd64State) afterCall() {
	s.calls = true
	for _, r := range [...]int{amd64RAX, amd64RCX, amd64RDX, amd64RSI, amd64RDI, amd64R8, amd64R9, amd64R10, amd64R11} {
		s.regs[r] = Loc{}
	}
}

func (t *amd64Tracer) group5(s *amd64State, in *x86Inst) way {
	switch in.OpX {
	case 2, 3:
		s.afterCall()
	case 4, 5:
		return wayJumps
	case 6: // push r/m
		v := s.operand(in)
		s.moveSP(-8)
		s.store(s.regs[amd64RSP], v)
	default:
		s.clobber(in)
	}
	return wayGoesOn
}

// arithImm: add, or, adc, sbb, and, sub, xor, cmp with an immediate.
func (s *amd64State) arithImm(in *x86Inst) {
	if in.OpX == 7 {
		return
	}
	if in.Mem {
		s.store(s.address(in), Loc{})
		return
	}
	if in.OpX == 4 && x86Dwarf[in.RM] == amd64RSP {
		// and rsp, -16: either rsp is set back from another register later, or it was
		// aligned, for otherwise the code could not find its own frame again.
		return
	}
	v := s.get(in.RM)
	known := in.W && v.Kind == Value && in.Imm == int64(int32(in.Imm))
	switch {
	case known && in.OpX == 0:
		v.Off += int32(in.Imm)
	case known && in.OpX == 5:
		v.Off -= int32(in.Imm)
	default:
		v = Loc{}
	}
	s.set(in.RM, v)
}

// newToken stands for a stack pointer of which nothing is known but itself.
func (s *amd64State) newToken() Loc {
	s.tokens++
	return Loc{Value, firstToken + s.tokens%64, 0}
}

// target is where a jump goes, if that is in the code.
func (t *amd64Tracer) target(next uint32, in *x86Inst) (uint32, bool) {
	target := int64(next) + in.Imm
	return uint32(target), target >= 0 && target < int64(len(t.code))
}
