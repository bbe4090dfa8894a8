package arm64

import (
	"encoding/binary"
	"math"

	"goprof/arch"
)

// tracer reads A64 code ahead. It executes a few instructions symbolically (those that move the
// stack pointer, the frame pointer, the link register, and words between registers and the stack) and
// steps over all others, until the code returns or jumps away. See the amd64 one; what differs is that
// a call leaves the return address in the link register, so code has none on the stack until it puts it there.
type tracer struct {
	java     arch.JavaRegs
	code     []byte
	base     uint64
	start    uint32   // offset
	seen     []uint64 // one bit per instruction
	todo     []state
	entry    bool
	frame    int32                // where to stop: when this many bytes stand between sp and the caller's
	whole    func(pc uint64) bool // or where they are known to
	fallback arch.Exit            // the first exit by a jump
	found    bool
}

func (t *tracer) Trace(code []byte, base, pc uint64, frame int32) (arch.Exit, error) {
	t.entry, t.frame, t.whole = false, frame, nil
	return t.run(code, base, pc)
}

func (t *tracer) TraceTo(code []byte, base, pc uint64, frame int32, whole func(pc uint64) bool) (arch.Exit, error) {
	t.entry, t.frame, t.whole = false, frame, whole
	return t.run(code, base, pc)
}

func (t *tracer) TraceEntry(code []byte, base, pc uint64) (arch.Exit, error) {
	t.entry, t.frame, t.whole = true, 0, nil
	return t.run(code, base, pc)
}

// begins reports whether pc is an instruction of the code, and makes all of it new.
func (t *tracer) begins(code []byte, base, pc uint64) bool {
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

func (t *tracer) run(code []byte, base, pc uint64) (arch.Exit, error) {
	if !t.begins(code, base, pc) {
		return arch.Exit{}, arch.ErrNoCode
	}
	t.todo, t.found = t.todo[:0], false
	var s state
	s.pc, s.dead = uint32(pc-base), math.MinInt32
	t.start = s.pc
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

// isNewFor reports whether an offset is one of the code to which no way has led yet. lost: the way has lost the
// stack pointer; then another one that has not may come there again.
func (t *tracer) isNewFor(at uint32, lost bool) bool {
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
func (t *tracer) follow(s *state, steps *int) (arch.Exit, bool) {
	var in inst
	for ; *steps < arch.MaxSteps; *steps++ {
		if t.whole != nil && t.whole(t.base+uint64(s.pc)) {
			return s.sized(t.frame)
		}
		if !t.isNewFor(s.pc, s.regs[regSP].Reg >= arch.FirstToken) || !decode(t.code[s.pc:], &in) {
			return arch.Exit{}, false
		}
		at := s.pc
		s.pc += 4
		switch t.step(s, &in, at) {
		case arch.WayEnds:
			return arch.Exit{}, false
		case arch.WayReturns:
			if t.whole != nil {
				return arch.Exit{}, false
			}
			exit := s.exit(s.get(in.Rn), t.java)
			return exit, exit.RA.Kind != arch.Unknown && exit.SP.Kind == arch.Value
		case arch.WayBuildsFrame:
			return s.built(t.java), true
		case arch.WayGoesOn:
			if t.frame != 0 && t.whole == nil && !s.calls {
				if exit, ok := s.framed(t.frame, *steps); ok {
					return exit, true
				}
			}
		case arch.WayJumps:
			if t.whole != nil {
				if in.Op == opJump && !isConstant(s.get(in.Rn)) {
					return s.sized(t.frame)
				}
				return arch.Exit{}, false
			}
			t.jumpsOut(s, &in)
			return arch.Exit{}, false
		}
	}
	return arch.Exit{}, false
}

// jumpsOut keeps an exit by a jump, if no better one is known. A jump to an address that the code itself
// holds is a direct one over a long way. In the scratch registers, x8 and x9, is where the interpreter goes on
// or a method begins, never a return address.
func (t *tracer) jumpsOut(s *state, in *inst) {
	exit := s.exit(s.regs[x30], t.java)
	exit.Jump = true
	if in.Op == opJump {
		target := s.get(in.Rn)
		exit.Indirect = !isConstant(target)
		if in.Rn != x8 && in.Rn != x9 {
			exit.Target = arch.Told(target)
		}
	}
	if sender := (arch.RegPlus(uint8(t.java.SenderSP), 0)); exit.SenderSP == sender && !t.hasSetSender() {
		exit.SenderSP = exit.SP
	}
	if exit.Indirect {
		exit.ThrownAt = arch.Told(s.regs[t.java.ThrownAt])
		if exit.ThrownAt.Kind != arch.Unknown { // the link register may be stale: C2's exception blob does not load it
			exit.Taken = exit.ThrownAt
		}
	}
	was := &t.fallback
	if !t.found || exit.Indirect && !was.Indirect || exit.Indirect == was.Indirect && was.SP.Kind == arch.Unknown && exit.SP.Kind != arch.Unknown {
		t.fallback, t.found = exit, true
	}
}

// hasSetSender reports whether the code before the start has put its stack pointer where an adapter passes it on
// (sharedRuntime_aarch64.cpp, gen_c2i_adapter: from there on it does not branch).
func (t *tracer) hasSetSender() bool {
	var in inst
	for at := t.start; at >= 4 && decode(t.code[at-4:], &in); at -= 4 {
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

// exit tells the state at a return to ra (or where one would be) in terms of the start.
func (s *state) exit(ra arch.Loc, java arch.JavaRegs) arch.Exit {
	sp := arch.Told(s.regs[regSP])
	e := arch.Exit{
		RA: arch.Told(ra), SP: sp, End: sp, FP: arch.Told(s.regs[x29]), Saved: s.saved, Taken: arch.Told(s.regs[x30]),
		SenderSP: arch.Told(s.regs[java.SenderSP]), BCP: arch.Told(s.regs[java.BCP]),
		Calls: s.calls, WritesRA: s.patch,
	}
	for r := x19; r < x29; r++ {
		if s.regs[r] == (arch.RegPlus(uint8(r), 0)) {
			e.Kept |= 1 << r
		}
	}
	if at := s.raAt; ra == s.regs[x30] && at.Kind == arch.Value {
		_, writes := s.stored(at)
		e.WritesRA = e.WritesRA || writes && e.RA.Kind == arch.Unknown
		if e.RA.Kind == arch.Unknown && at.Reg < arch.FirstToken && (at.Reg != regSP || at.Off >= 0) {
			// The code ahead writes its own return address (exception stubs do); until then the word
			// is what it was.
			e.RA = arch.MemAt(at.Reg, at.Off)
		}
	}
	return e
}

// built tells the exit of code that has just made a standard frame: what it has saved there is its caller's.
func (s *state) built(java arch.JavaRegs) arch.Exit {
	fp := s.regs[x29]
	e := s.exit(s.load(plus(fp, 8)), java)
	e.FP, e.SP = arch.Told(s.load(fp)), arch.Told(plus(fp, 16))
	e.FrameBuilt = true
	return e
}

// framed tells the exit of code that has just completed a frame of that size, in one of the two forms that
// there are (macroAssembler_aarch64.cpp, build_frame): all at once, x29 and x30 stored at its upper end; or
// first those two, pushed. Then, from behind the push, at most a frame pointer is set and a number loaded.
func (s *state) framed(size int32, before int) (arch.Exit, bool) {
	sp := s.regs[regSP]
	if sp.Kind != arch.Value || sp.Reg != regSP {
		return arch.Exit{}, false
	}
	const atMost = 4
	switch sp.Off {
	case -size, 0: // from before the frame; from behind the sub
		ra, ok := s.stored(plus(sp, int64(size)-8))
		fp, ok2 := s.stored(plus(sp, int64(size)-16))
		if !ok || !ok2 || ra != (arch.RegPlus(x30, 0)) || fp != (arch.RegPlus(x29, 0)) {
			return arch.Exit{}, false
		}
	case 16 - size: // from behind the push
		if before > atMost || size <= 16 {
			return arch.Exit{}, false
		}
	default:
		return arch.Exit{}, false
	}
	return s.sized(size)
}

// sized tells the exit of code whose whole frame has that size.
func (s *state) sized(size int32) (arch.Exit, bool) {
	sp := s.regs[regSP]
	if sp.Kind != arch.Value || sp.Reg != regSP || size < 16 {
		return arch.Exit{}, false
	}
	end := plus(sp, int64(size))
	if end.Kind != arch.Value {
		return arch.Exit{}, false
	}
	return arch.Exit{RA: arch.Told(s.load(plus(end, -8))), FP: arch.Told(s.load(plus(end, -16))), SP: end, End: end,
		Calls: s.calls, FrameBuilt: true}, true
}

// step executes one instruction; at is its own offset, s.pc already the next one's.
func (t *tracer) step(s *state, in *inst, at uint32) arch.Way {
	switch in.Op {
	case opOther:
		s.clobber(in.Writes)
	case opAdd:
		if t.takesCallersSP(at) {
			return arch.WayEnds
		}
		s.set(in.Rd, plus(s.get(in.Rn), in.Imm))
		if in.Rd == x29 && in.Rn == regSP && in.Imm == 0 && t.entry && s.enters() {
			return arch.WayBuildsFrame
		}
	case opAddReg, opSubReg:
		s.set(in.Rd, s.addReg(in))
	case opAnd:
		// A stack pointer that is aligned either is set back from another register later, or was
		// aligned, for otherwise the code could not find its own frame again.
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
		if t.entry && t.storesSenderSP(in) {
			return arch.WayBuildsFrame
		}
	case opCond:
		t.branch(s, in, at)
	case opBranch:
		target, ok := t.target(at, in)
		if !ok {
			return arch.WayJumps
		}
		s.pc = target
	case opCall:
		s.afterCall()
	case opJump:
		to := s.get(in.Rn)
		if t.whole != nil || to.Kind != arch.Value || to.Reg != nearReg && to.Reg != codeReg || to.Off%4 != 0 {
			return arch.WayJumps
		}
		s.pc = uint32(to.Off) // or some instructions before: the last round of an unrolled loop
	case opRet:
		return arch.WayReturns
	default:
		return arch.WayEnds
	}
	return arch.WayGoesOn
}

// near is an address that the code makes from its own.
func (t *tracer) near(at uint32, in *inst) arch.Loc {
	if to, ok := t.target(at, in); ok && to%4 == 0 {
		return arch.RegPlus(codeReg, int32(to))
	}
	return someAddress
}

// takesCallersSP reports whether the code goes back with a stack pointer from its caller's frame pointer. Up to 17 it does so, on
// a condition, where a method handle's caller handles an exception (c1_Runtime1_aarch64.cpp, handle_exception_from_callee and
// generate_unwind_exception). That stack pointer is the one at hand, for interpreted callees have put it back; the other way goes
// on with it.
func (t *tracer) takesCallersSP(at uint32) bool {
	const movSPFP = 0x910003bf
	var next inst
	return binary.LittleEndian.Uint32(t.code[at:]) == movSPFP && decode(t.code[at+4:], &next) && (next.Op == opRet || next.Op == opJump)
}

// postStep is what an indexPostReg adds to its base. Where the code that saves all registers has been
// interrupted between its stores, that was loaded before (macroAssembler_aarch64.cpp, push_CPU_state).
func (t *tracer) postStep(s *state, in *inst) arch.Loc {
	by := s.get(in.Rm)
	if in.Index != indexPostReg || by != (arch.RegPlus(in.Rm, 0)) {
		return by
	}
	var before inst
	for at := t.start; at >= 4 && t.start-at < 4*arch.MaxSlots && decode(t.code[at-4:], &before); at -= 4 {
		switch {
		case before.Op == opConst && before.Rd == in.Rm:
			return constant(before.Imm)
		case before.Op != opStore && before.Op != opLoad && before.Op != opAdd:
			return by
		}
	}
	return by
}

// enters reports whether the frame pointer has just been set to where it and the return address are saved:
// macroAssembler_aarch64.cpp, enter.
func (s *state) enters() bool {
	sp := s.regs[regSP]
	fp, ok := s.stored(sp)
	_, ok2 := s.stored(plus(sp, 8))
	return ok && ok2 && fp.Kind != arch.Unknown
}

// storesSenderSP reports whether the interpreter has stored its caller's stack pointer, the last word that
// makes its frame one that can be walked (templateInterpreterGenerator_aarch64.cpp, generate_fixed_frame).
func (t *tracer) storesSenderSP(in *inst) bool {
	// With a zero beside it: code that saves all registers pairs them otherwise. What the register holds does not matter: up to 17
	// a collector's barrier before that may have called C.
	return in.Pair && !in.Narrow && in.Index == indexOffset && in.Rn == regSP && in.Rd == zr && int(in.Rt2) == t.java.SenderSP
}

func (t *tracer) branch(s *state, in *inst, at uint32) {
	target, ok := t.target(at, in)
	if !ok || len(t.todo) >= arch.MaxWays {
		return
	}
	t.todo = append(t.todo, *s)
	t.todo[len(t.todo)-1].pc = target
}

// target is where a branch goes, if that is in the code.
func (t *tracer) target(at uint32, in *inst) (uint32, bool) {
	target := int64(at) + in.Imm
	return uint32(target), target >= 0 && target < int64(len(t.code))
}
