package arch

import "slices"

// arm64State is the machine on one way: what each register holds, told in terms of the registers at
// the start, and what was stored to the stack since.
type arm64State struct {
	pc     uint32 // offset in the code
	tokens uint8
	calls  bool
	patch  bool // the return address of the standard frame at the start was written
	nslots uint8
	dead   int32 // the stack pointer has been this far above x29: what lay below is no more
	saved  Loc   // what SavedSP stands for
	// raAt is where the link register came from.
	raAt  Loc
	regs  [32]Loc // x0 to x30, sp
	slots [maxTraceSlots]arm64Slot
}

type arm64Slot struct {
	reg uint8
	off int32
	val Loc
}

// Registers that stand for constants in a Loc: a small number in Off, or an address that the code holds; and for addresses
// in the code itself, by their offset: that one, or one computed from it.
const (
	constReg = 0xfe
	addrReg  = 0xfd
	codeReg  = 0xfc
	nearReg  = 0xfb
)

var someAddress = Loc{Value, addrReg, 0}

func constant(v int64) Loc {
	if v != int64(int32(v)) {
		return someAddress
	}
	return Loc{Value, constReg, int32(v)}
}

// isConstant reports whether l is known without any register.
func isConstant(l Loc) bool {
	return l.Kind == Value && (l.Reg == constReg || l.Reg == addrReg || l.Reg == codeReg)
}

func (s *arm64State) get(r uint8) Loc {
	if r == zr {
		return constant(0)
	}
	return s.regs[r&31]
}

// set gives a register a value. A stack pointer always has one: of what cannot be told it is known that
// it is itself.
func (s *arm64State) set(r uint8, v Loc) {
	if r == zr {
		return
	}
	if r == arm64X30 {
		s.raAt = Loc{}
	}
	s.regs[r&31] = v
	if r == arm64SP {
		s.settleSP()
	}
}

// settleSP deals with a stack pointer that has just been set. One that was in memory at the start
// (the interpreter's sender sp, in the frame) is the one that all is told relative to from here on, and
// nothing to one that came before.
func (s *arm64State) settleSP() {
	sp := s.regs[arm64SP]
	switch {
	case sp.Kind == AtMem && (sp.Reg == arm64SP && sp.Off >= 0 || sp.Reg == arm64X29):
		if s.saved != sp && s.saved.Kind != Unknown {
			s.forgetSavedSP()
		}
		s.saved = sp
		s.regs[arm64SP] = Loc{Value, SavedSP, 0}
	case sp.Kind != Value || isConstant(sp):
		s.tokens++
		s.regs[arm64SP] = Loc{Value, firstToken + s.tokens%64, 0}
	case sp.Reg == arm64X29:
		s.dead = max(s.dead, sp.Off)
	}
}

// forgetSavedSP forgets all that is told relative to a stack pointer that was saved.
func (s *arm64State) forgetSavedSP() {
	for i := range s.regs {
		if s.regs[i].Reg == SavedSP {
			s.regs[i] = Loc{}
		}
	}
	for i := range s.slots[:s.nslots] {
		slot := &s.slots[i]
		if slot.reg == SavedSP || slot.val.Reg == SavedSP {
			slot.val = Loc{}
		}
		if slot.reg == SavedSP {
			slot.reg = noReg
		}
	}
}

// plus is l + n, if that can be told.
func plus(l Loc, n int64) Loc {
	off := int64(l.Off) + n
	switch {
	case n == 0:
		return l
	case l.Kind != Value:
		return Loc{}
	case l.Reg == addrReg:
		return l
	case off != int64(int32(off)):
		return Loc{}
	}
	l.Off = int32(off)
	return l
}

// addReg is the value of rn + (rm << shift), or rn - it.
func (s *arm64State) addReg(in *a64Inst) Loc {
	n, m := s.get(in.Rn), s.get(in.Rm)
	if m.Kind != Value || m.Reg != constReg || in.Imm < 0 {
		if n.Kind == Value && (n.Reg == codeReg || n.Reg == nearReg) {
			return Loc{Value, nearReg, n.Off}
		}
		if isConstant(n) && isConstant(m) {
			return someAddress
		}
		return Loc{}
	}
	v := int64(m.Off) << in.Imm
	if in.Op == a64SubReg {
		v = -v
	}
	return plus(n, v)
}

// keep is movk: 16 bits of a constant.
func (s *arm64State) keep(in *a64Inst) Loc {
	v := s.get(in.Rd)
	if !isConstant(v) {
		return Loc{}
	}
	if v.Reg != constReg || in.Rm > 16 {
		return someAddress
	}
	return constant(int64(v.Off)&^(0xffff<<in.Rm) | in.Imm<<in.Rm)
}

func (s *arm64State) load(addr Loc) Loc {
	if addr.Kind != Value {
		return Loc{}
	}
	if v, ok := s.stored(addr); ok {
		return v
	}
	if addr.Reg >= firstToken || s.isDead(addr) {
		return Loc{} // below the stack pointer nothing stands yet
	}
	return Loc{AtMem, addr.Reg, addr.Off}
}

// isDead reports whether a word lies where nothing was that counts: it holds what has been stored there since.
func (s *arm64State) isDead(addr Loc) bool {
	return addr.Reg == arm64SP && addr.Off < 0 || addr.Reg == arm64X29 && addr.Off < s.dead
}

// stored returns what was stored at addr on the way here.
func (s *arm64State) stored(addr Loc) (Loc, bool) {
	if addr.Kind != Value {
		return Loc{}, false
	}
	i := s.slot(addr)
	if i < 0 {
		return Loc{}, false
	}
	return s.slots[i].val, true
}

func (s *arm64State) slot(addr Loc) int {
	return slices.IndexFunc(s.slots[:s.nslots], func(slot arm64Slot) bool { return slot.reg == addr.Reg && slot.off == addr.Off })
}

// store notes a word that goes to the stack. Of those that nobody asks for, it is only noted that
// they are no longer what they were.
func (s *arm64State) store(addr, v Loc) {
	if addr.Kind != Value || addr.Reg != arm64X29 && addr.Reg != s.regs[arm64SP].Reg {
		return
	}
	s.patch = s.patch || addr == (Loc{Value, arm64X29, 8})
	if !isTracked(v) {
		v = Loc{}
	}
	old := s.slot(addr)
	if old < 0 && v.Kind == Unknown && s.isDead(addr) {
		return
	}
	if old < 0 && int(s.nslots) == len(s.slots) {
		old = 0 // the oldest
	}
	if old >= 0 {
		copy(s.slots[old:s.nslots], s.slots[old+1:s.nslots])
		s.nslots--
	}
	s.slots[s.nslots] = arm64Slot{addr.Reg, addr.Off, v}
	s.nslots++
}

// isTracked tells values that an exit may be told by: those of registers that a callee gives back, of
// the interpreter's, and of words in memory. A stub that saves all registers saves 31.
func isTracked(v Loc) bool {
	switch {
	case v.Kind == AtMem:
		return true
	case v.Kind == Unknown || isConstant(v):
		return false
	}
	return v.Reg >= arm64X19 || v.Reg == arm64X13 || v.Reg == arm64X3
}

// access does what a load or a store does to the registers and the stack. by is what a64PostReg adds.
func (s *arm64State) access(in *a64Inst, by Loc) {
	base := s.get(in.Rn)
	addr := base
	switch in.Index {
	case a64Offset, a64Pre:
		addr = plus(base, in.Imm)
	case a64NoAddr:
		addr = Loc{}
	}
	if in.Op == a64Load { // before its base moves: a stack pointer leaves dead words behind
		s.loads(in, addr)
	}
	switch in.Index { // a base that is written is none of the loaded registers (Arm ARM: unpredictable)
	case a64Pre, a64Post:
		s.set(in.Rn, plus(base, in.Imm))
	case a64PostReg:
		v := Loc{}
		if by.Kind == Value && by.Reg == constReg {
			v = plus(base, int64(by.Off))
		}
		s.set(in.Rn, v)
	}
	if in.Op == a64Load {
		return
	}
	if in.Bytes != 0 {
		s.overwrite(addr, int32(in.Bytes))
		return
	}
	s.stores(in, addr)
}

func (s *arm64State) loads(in *a64Inst, addr Loc) {
	v, v2 := Loc{}, Loc{}
	if !in.Narrow {
		v, v2 = s.load(addr), s.load(plus(addr, 8))
	}
	s.loaded(in.Rd, v, addr)
	if in.Pair {
		s.loaded(in.Rt2, v2, plus(addr, 8))
	}
}

func (s *arm64State) loaded(reg uint8, v, addr Loc) {
	s.set(reg, v)
	if reg == arm64X30 {
		s.raAt = addr
	}
}

func (s *arm64State) stores(in *a64Inst, addr Loc) {
	v, v2 := s.get(in.Rd), Loc{}
	if in.Narrow {
		v = Loc{}
	}
	s.store(addr, v)
	if in.Pair {
		if !in.Narrow {
			v2 = s.get(in.Rt2)
		}
		s.store(plus(addr, 8), v2)
	}
}

// overwrite forgets the words that vector registers may be stored to.
func (s *arm64State) overwrite(addr Loc, bytes int32) {
	for i := range s.slots[:s.nslots] {
		slot := &s.slots[i]
		if addr.Kind == Value && slot.reg == addr.Reg && slot.off > addr.Off-8 && slot.off < addr.Off+bytes {
			slot.val = Loc{}
		}
	}
}
