package arch

import (
	"encoding/binary"
	"math"
)

// arm64Tracer reads A64 code ahead. It executes a few instructions symbolically (those that move the
// stack pointer, the frame pointer, the link register, and words between registers and the stack) and
// steps over all others, until the code returns or jumps away. See amd64Tracer; what differs is that
// a call leaves the return address in the link register, so code has none on the stack until it puts it there.
type arm64Tracer struct {
	java     JavaRegs
	code     []byte
	base     uint64
	start    uint32   // offset
	seen     []uint64 // one bit per instruction
	todo     []arm64State
	entry    bool
	frame    int32                // where to stop: when this many bytes stand between sp and the caller's
	whole    func(pc uint64) bool // or where they are known to
	fallback Exit                 // the first exit by a jump
	found    bool
}

func (t *arm64Tracer) Trace(code []byte, base, pc uint64, frame int32) (Exit, error) {
	t.entry, t.frame, t.whole = false, frame, nil
	return t.run(code, base, pc)
}

func (t *arm64Tracer) TraceTo(code []byte, base, pc uint64, frame int32, whole func(pc uint64) bool) (Exit, error) {
	t.entry, t.frame, t.whole = false, frame, whole
	return t.run(code, base, pc)
}

func (t *arm64Tracer) TraceEntry(code []byte, base, pc uint64) (Exit, error) {
	t.entry, t.frame, t.whole = true, 0, nil
	return t.run(code, base, pc)
}

// begins reports whether pc is an instruction of the code, and makes all of it new.
func (t *arm64Tracer) begins(code []byte, base, pc uint64) bool {
	if pc < base || pc-base >= uint64(len(code)) || (pc-base)%4 != 0 || uint64(len(code)) >= 1<<31 {
		return false
	}
	t.code, t.base = code, base
	words := 2 * (len(code)/256 + 1)
	if cap(t.seen) < words {
		t.seen = make([]uint64, words)
	}
	t.seen = t.seen[:words]
	clear(t.seen)
	return true
}

func (t *arm64Tracer) run(code []byte, base, pc uint64) (Exit, error) {
	if !t.begins(code, base, pc) {
		return Exit{}, ErrNoCode
	}
	t.todo, t.found = t.todo[:0], false
	var s arm64State
	s.pc, s.dead = uint32(pc-base), math.MinInt32
	t.start = s.pc
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

// isNewFor reports whether an offset is one of the code to which no way has led yet. lost: the way has lost the
// stack pointer; then another one that has not may come there again.
func (t *arm64Tracer) isNewFor(at uint32, lost bool) bool {
	word, bit := at/256*2, uint64(1)<<(at/4%64)
	if int(at) >= len(t.code) || t.seen[word]&bit != 0 || lost && t.seen[word+1]&bit != 0 {
		return false
	}
	if lost {
		word++
	}
	t.seen[word] |= bit
	return true
}

// follow goes one way until it returns or ends.
func (t *arm64Tracer) follow(s *arm64State, steps *int) (Exit, bool) {
	var in a64Inst
	for ; *steps < maxTraceSteps; *steps++ {
		if t.whole != nil && t.whole(t.base+uint64(s.pc)) {
			return s.sized(t.frame)
		}
		if !t.isNewFor(s.pc, s.regs[arm64SP].Reg >= firstToken) || !decodeA64(t.code[s.pc:], &in) {
			return Exit{}, false
		}
		at := s.pc
		s.pc += 4
		switch t.step(s, &in, at) {
		case wayEnds:
			return Exit{}, false
		case wayReturns:
			if t.whole != nil {
				return Exit{}, false
			}
			exit := s.exit(s.get(in.Rn), t.java)
			return exit, exit.RA.Kind != Unknown && exit.SP.Kind == Value
		case wayBuildsFrame:
			return s.built(t.java), true
		case wayGoesOn:
			if t.frame != 0 && t.whole == nil && !s.calls {
				if exit, ok := s.framed(t.frame, *steps); ok {
					return exit, true
				}
			}
		case wayJumps:
			if t.whole != nil {
				if in.Op == a64Jump && !isConstant(s.get(in.Rn)) {
					return s.sized(t.frame)
				}
				return Exit{}, false
			}
			t.jumpsOut(s, &in)
			return Exit{}, false
		}
	}
	return Exit{}, false
}

// jumpsOut keeps an exit by a jump, if no better one is known. A jump to an address that the code itself
// holds is a direct one over a long way. In the scratch registers, x8 and x9, is where the interpreter goes on
// or a method begins, never a return address.
func (t *arm64Tracer) jumpsOut(s *arm64State, in *a64Inst) {
	exit := s.exit(s.regs[arm64X30], t.java)
	exit.Jump = true
	if in.Op == a64Jump {
		target := s.get(in.Rn)
		exit.Indirect = !isConstant(target)
		if in.Rn != arm64X8 && in.Rn != arm64X9 {
			exit.Target = told(target)
		}
	}
	if sender := (Loc{Value, uint8(t.java.SenderSP), 0}); exit.SenderSP == sender && !t.hasSetSender() {
		exit.SenderSP = exit.SP
	}
	if exit.Indirect {
		exit.ThrownAt = told(s.regs[t.java.ThrownAt])
		if exit.ThrownAt.Kind != Unknown { // the link register may be stale: C2's exception blob does not load it
			exit.Taken = exit.ThrownAt
		}
	}
	was := &t.fallback
	if !t.found || exit.Indirect && !was.Indirect || exit.Indirect == was.Indirect && was.SP.Kind == Unknown && exit.SP.Kind != Unknown {
		t.fallback, t.found = exit, true
	}
}

// hasSetSender reports whether the code before the start has put its stack pointer where an adapter passes it on
// (sharedRuntime_aarch64.cpp, gen_c2i_adapter: from there on it does not branch).
func (t *arm64Tracer) hasSetSender() bool {
	var in a64Inst
	for at := t.start; at >= 4 && decodeA64(t.code[at-4:], &in); at -= 4 {
		switch in.Op {
		case a64Add:
			if int(in.Rd) == t.java.SenderSP && in.Rn == arm64SP {
				return true
			}
		case a64Branch, a64Cond, a64Call, a64Jump, a64Ret, a64Trap:
			return false
		}
	}
	return false
}

// exit tells the state at a return to ra (or where one would be) in terms of the start.
func (s *arm64State) exit(ra Loc, java JavaRegs) Exit {
	sp := told(s.regs[arm64SP])
	e := Exit{
		RA: told(ra), SP: sp, End: sp, FP: told(s.regs[arm64X29]), Saved: s.saved, Taken: told(s.regs[arm64X30]),
		SenderSP: told(s.regs[java.SenderSP]), BCP: told(s.regs[java.BCP]),
		Calls: s.calls, WritesRA: s.patch,
	}
	for r := arm64X19; r < arm64X29; r++ {
		if s.regs[r] == (Loc{Value, uint8(r), 0}) {
			e.Kept |= 1 << r
		}
	}
	if at := s.raAt; ra == s.regs[arm64X30] && at.Kind == Value {
		_, writes := s.stored(at)
		e.WritesRA = e.WritesRA || writes && e.RA.Kind == Unknown
		if e.RA.Kind == Unknown && at.Reg < firstToken && (at.Reg != arm64SP || at.Off >= 0) {
			// The code ahead writes its own return address (exception stubs do); until then the word
			// is what it was.
			e.RA = Loc{AtMem, at.Reg, at.Off}
		}
	}
	return e
}

// built tells the exit of code that has just made a standard frame: what it has saved there is its caller's.
func (s *arm64State) built(java JavaRegs) Exit {
	fp := s.regs[arm64X29]
	e := s.exit(s.load(plus(fp, 8)), java)
	e.FP, e.SP = told(s.load(fp)), told(plus(fp, 16))
	e.FrameBuilt = true
	return e
}

// framed tells the exit of code that has just completed a frame of that size, in one of the two forms that
// there are (macroAssembler_aarch64.cpp, build_frame): all at once, x29 and x30 stored at its upper end; or
// first those two, pushed. Then, from behind the push, at most a frame pointer is set and a number loaded.
func (s *arm64State) framed(size int32, before int) (Exit, bool) {
	sp := s.regs[arm64SP]
	if sp.Kind != Value || sp.Reg != arm64SP {
		return Exit{}, false
	}
	const atMost = 4
	switch sp.Off {
	case -size, 0: // from before the frame; from behind the sub
		ra, ok := s.stored(plus(sp, int64(size)-8))
		fp, ok2 := s.stored(plus(sp, int64(size)-16))
		if !ok || !ok2 || ra != (Loc{Value, arm64X30, 0}) || fp != (Loc{Value, arm64X29, 0}) {
			return Exit{}, false
		}
	case 16 - size: // from behind the push
		if before > atMost || size <= 16 {
			return Exit{}, false
		}
	default:
		return Exit{}, false
	}
	return s.sized(size)
}

// sized tells the exit of code whose whole frame has that size.
func (s *arm64State) sized(size int32) (Exit, bool) {
	sp := s.regs[arm64SP]
	if sp.Kind != Value || sp.Reg != arm64SP || size < 16 {
		return Exit{}, false
	}
	end := plus(sp, int64(size))
	if end.Kind != Value {
		return Exit{}, false
	}
	return Exit{RA: told(s.load(plus(end, -8))), FP: told(s.load(plus(end, -16))), SP: end, End: end,
		Calls: s.calls, FrameBuilt: true}, true
}

// step executes one instruction; at is its own offset, s.pc already the next one's.
func (t *arm64Tracer) step(s *arm64State, in *a64Inst, at uint32) way {
	switch in.Op {
	case a64Other:
		s.clobber(in.Writes)
	case a64Add:
		if t.takesCallersSP(at) {
			return wayEnds
		}
		s.set(in.Rd, plus(s.get(in.Rn), in.Imm))
		if in.Rd == arm64X29 && in.Rn == arm64SP && in.Imm == 0 && t.entry && s.enters() {
			return wayBuildsFrame
		}
	case a64AddReg, a64SubReg:
		s.set(in.Rd, s.addReg(in))
	case a64And:
		// A stack pointer that is aligned either is set back from another register later, or was
		// aligned, for otherwise the code could not find its own frame again.
		s.set(in.Rd, s.get(in.Rn))
	case a64Mov:
		s.set(in.Rd, s.get(in.Rm))
	case a64Const:
		s.set(in.Rd, constant(in.Imm))
	case a64Keep:
		s.set(in.Rd, s.keep(in))
	case a64Near:
		s.set(in.Rd, t.near(at, in))
	case a64Addr:
		s.set(in.Rd, someAddress)
	case a64Sign: // the walk strips signatures
	case a64Load:
		s.access(in, t.postStep(s, in))
	case a64Store:
		s.access(in, t.postStep(s, in))
		if t.entry && t.storesSenderSP(in) {
			return wayBuildsFrame
		}
	case a64Cond:
		t.branch(s, in, at)
	case a64Branch:
		target, ok := t.target(at, in)
		if !ok {
			return wayJumps
		}
		s.pc = target
	case a64Call:
		s.afterCall()
	case a64Jump:
		to := s.get(in.Rn)
		if t.whole != nil || to.Kind != Value || to.Reg != nearReg && to.Reg != codeReg || to.Off%4 != 0 {
			return wayJumps
		}
		s.pc = uint32(to.Off) // or some instructions before: the last round of an unrolled loop
	case a64Ret:
		return wayReturns
	default:
		return wayEnds
	}
	return wayGoesOn
}

// near is an address that the code makes from its own.
func (t *arm64Tracer) near(at uint32, in *a64Inst) Loc {
	if to, ok := t.target(at, in); ok && to%4 == 0 {
		return Loc{Value, codeReg, int32(to)}
	}
	return someAddress
}

// takesCallersSP reports whether the code goes back with a stack pointer from its caller's frame pointer. Up to 17 it does so, on
// a condition, where a method handle's caller handles an exception (c1_Runtime1_aarch64.cpp, handle_exception_from_callee and
// generate_unwind_exception). That stack pointer is the one at hand, for interpreted callees have put it back; the other way goes
// on with it.
func (t *arm64Tracer) takesCallersSP(at uint32) bool {
	const movSPFP = 0x910003bf
	var next a64Inst
	return binary.LittleEndian.Uint32(t.code[at:]) == movSPFP && decodeA64(t.code[at+4:], &next) && (next.Op == a64Ret || next.Op == a64Jump)
}

// postStep is what an a64PostReg adds to its base. Where the code that saves all registers has been
// interrupted between its stores, that was loaded before (macroAssembler_aarch64.cpp, push_CPU_state).
func (t *arm64Tracer) postStep(s *arm64State, in *a64Inst) Loc {
	by := s.get(in.Rm)
	if in.Index != a64PostReg || by != (Loc{Value, in.Rm, 0}) {
		return by
	}
	var before a64Inst
	for at := t.start; at >= 4 && t.start-at < 4*maxTraceSlots && decodeA64(t.code[at-4:], &before); at -= 4 {
		switch {
		case before.Op == a64Const && before.Rd == in.Rm:
			return constant(before.Imm)
		case before.Op != a64Store && before.Op != a64Load && before.Op != a64Add:
			return by
		}
	}
	return by
}

// clobber forgets the registers of a set. A stack pointer that is forgotten is one of unknown origin.
func (s *arm64State) clobber(regs uint32) {
	for r := uint8(0); regs != 0; r, regs = r+1, regs>>1 {
		if regs&1 != 0 {
			s.set(r, Loc{})
		}
	}
}

// enters reports whether the frame pointer has just been set to where it and the return address are saved:
// macroAssembler_aarch64.cpp, enter.
func (s *arm64State) enters() bool {
	sp := s.regs[arm64SP]
	fp, ok := s.stored(sp)
	_, ok2 := s.stored(plus(sp, 8))
	return ok && ok2 && fp.Kind != Unknown
}

// storesSenderSP reports whether the interpreter has stored its caller's stack pointer, the last word that
// makes its frame one that can be walked (templateInterpreterGenerator_aarch64.cpp, generate_fixed_frame).
func (t *arm64Tracer) storesSenderSP(in *a64Inst) bool {
	// With a zero beside it: code that saves all registers pairs them otherwise. What the register holds does not matter: up to 17
	// a collector's barrier before that may have called C.
	return in.Pair && !in.Narrow && in.Index == a64Offset && in.Rn == arm64SP && in.Rd == zr && int(in.Rt2) == t.java.SenderSP
}

// afterCall forgets what a callee may change.
func (s *arm64State) afterCall() {
	s.calls = true
	for r := range arm64X19 {
		s.regs[r] = Loc{}
	}
	s.set(arm64X30, Loc{})
}

func (t *arm64Tracer) branch(s *arm64State, in *a64Inst, at uint32) {
	target, ok := t.target(at, in)
	if !ok || len(t.todo) >= maxTraceWays {
		return
	}
	t.todo = append(t.todo, *s)
	t.todo[len(t.todo)-1].pc = target
}

// target is where a branch goes, if that is in the code.
func (t *arm64Tracer) target(at uint32, in *a64Inst) (uint32, bool) {
	target := int64(at) + in.Imm
	return uint32(target), target >= 0 && target < int64(len(t.code))
}
