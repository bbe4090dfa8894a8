package arm64

import "goprof/arch"

// state is a State as this CPU's instructions see it.
type state struct{ *arch.State }

// Numbers of registers that do not exist. In a Loc, constReg stands for the constant Off, addrReg for some constant
// address, codeReg for the address at offset Off of the code, and nearReg for an address that is computed from that
// one.
const (
	constReg = 0xfe
	addrReg  = 0xfd
	codeReg  = 0xfc
	nearReg  = 0xfb
)

var someAddress = arch.RegPlus(addrReg, 0)

func constant(v int64) arch.Loc {
	if v != int64(int32(v)) {
		return someAddress
	}
	return arch.RegPlus(constReg, int32(v))
}

// isConstant reports whether l is known without any register.
func isConstant(l arch.Loc) bool {
	return l.Kind == arch.Value && (l.Reg == constReg || l.Reg == addrReg || l.Reg == codeReg)
}

func (s state) get(r uint8) arch.Loc {
	if r == zr {
		return constant(0)
	}
	return s.Regs[r&31]
}

// set gives a register a value. A stack pointer always has a value: an unknown one gets a token.
func (s state) set(r uint8, v arch.Loc) {
	if r == zr {
		return
	}
	if r == x30 {
		s.RAAt = arch.Loc{}
	}
	s.Regs[r&31] = v
	if r == regSP {
		s.settleSP()
	}
}

// settleSP deals with a stack pointer that has just been set. If its value was in memory at the start (the
// interpreter's sender sp, in the frame), all places on the stack are relative to it from now on, and places relative
// to an earlier stack pointer are forgotten.
func (s state) settleSP() {
	sp := s.Regs[regSP]
	switch {
	case sp.Kind == arch.AtMem && (sp.Reg == regSP && sp.Off >= 0 || sp.Reg == x29):
		s.Regs[regSP] = s.TakeSaved(sp)
	case sp.Kind != arch.Value || isConstant(sp):
		s.Regs[regSP] = s.Token()
	case sp.Reg == x29:
		s.Dead = max(s.Dead, sp.Off)
	}
	s.Lost = s.Regs[regSP].Reg >= arch.FirstToken
}

// plus returns l + n, if that is known.
func plus(l arch.Loc, n int64) arch.Loc {
	off := int64(l.Off) + n
	switch {
	case n == 0:
		return l
	case l.Kind != arch.Value:
		return arch.Loc{}
	case l.Reg == addrReg:
		return l
	case off != int64(int32(off)):
		return arch.Loc{}
	}
	l.Off = int32(off)
	return l
}

// addReg returns rn + (rm << shift), or rn minus that.
func (s state) addReg(in *inst) arch.Loc {
	n, m := s.get(in.Rn), s.get(in.Rm)
	if m.Kind != arch.Value || m.Reg != constReg || in.Imm < 0 {
		if n.Kind == arch.Value && (n.Reg == codeReg || n.Reg == nearReg) {
			return arch.RegPlus(nearReg, n.Off)
		}
		if isConstant(n) && isConstant(m) {
			return someAddress
		}
		return arch.Loc{}
	}
	v := int64(m.Off) << in.Imm
	if in.Op == opSubReg {
		v = -v
	}
	return plus(n, v)
}

// keep returns the value of a movk: it replaces 16 bits of a constant.
func (s state) keep(in *inst) arch.Loc {
	v := s.get(in.Rd)
	if !isConstant(v) {
		return arch.Loc{}
	}
	if v.Reg != constReg || in.Rm > 16 {
		return someAddress
	}
	return constant(int64(v.Off)&^(0xffff<<in.Rm) | in.Imm<<in.Rm)
}

func (s state) load(addr arch.Loc) arch.Loc {
	if addr.Kind != arch.Value {
		return arch.Loc{}
	}
	if v, ok := s.Stored(addr); ok {
		return v
	}
	if addr.Reg >= arch.FirstToken || s.isDead(addr) {
		return arch.Loc{} // nothing was stored below the stack pointer yet
	}
	return arch.MemAt(addr.Reg, addr.Off)
}

// isDead reports whether a word lies in memory that was not in use at the start. Such a word holds only what was stored
// there since.
func (s state) isDead(addr arch.Loc) bool {
	return addr.Reg == regSP && addr.Off < 0 || addr.Reg == x29 && addr.Off < s.Dead
}

// store notes a word that goes to the stack. If no exit needs the value, it only notes that the word has changed.
func (s state) store(addr, v arch.Loc) {
	if addr.Kind != arch.Value || addr.Reg != x29 && addr.Reg != s.Regs[regSP].Reg {
		return
	}
	s.Patched = s.Patched || addr == arch.RegPlus(x29, 8)
	if !isTracked(v) {
		v = arch.Loc{}
	}
	if v.Kind == arch.Unknown && s.isDead(addr) {
		if _, ok := s.Stored(addr); !ok {
			return
		}
	}
	s.Store(addr, v)
}

// isTracked reports whether a stored value must be kept, because an exit may need it: the value of a callee-saved
// register, of a register of the interpreter, or of a word in memory. Other values are dropped, because a stub that
// saves all 31 registers would fill the slots.
func isTracked(v arch.Loc) bool {
	switch {
	case v.Kind == arch.AtMem:
		return true
	case v.Kind == arch.Unknown || isConstant(v):
		return false
	}
	return v.Reg >= x19 || v.Reg == x13 || v.Reg == x3
}

// access makes the changes of a load or a store to the registers and the stack. by is what indexPostReg adds.
func (s state) access(in *inst, by arch.Loc) {
	base := s.get(in.Rn)
	addr := base
	switch in.Index {
	case indexOffset, indexPre:
		addr = plus(base, in.Imm)
	case indexNoAddr:
		addr = arch.Loc{}
	}
	if in.Op == opLoad { // the base has not moved yet: words below the stack pointer are dead
		s.loads(in, addr)
	}
	switch in.Index { // the base is not one of the loaded registers (Arm ARM: unpredictable)
	case indexPre, indexPost:
		s.set(in.Rn, plus(base, in.Imm))
	case indexPostReg:
		v := arch.Loc{}
		if by.Kind == arch.Value && by.Reg == constReg {
			v = plus(base, int64(by.Off))
		}
		s.set(in.Rn, v)
	}
	if in.Op == opLoad {
		return
	}
	if in.Bytes != 0 {
		s.Overwrite(addr, int32(in.Bytes))
		return
	}
	s.stores(in, addr)
}

func (s state) loads(in *inst, addr arch.Loc) {
	v, v2 := arch.Loc{}, arch.Loc{}
	if !in.Narrow {
		v, v2 = s.load(addr), s.load(plus(addr, 8))
	}
	s.loaded(in.Rd, v, addr)
	if in.Pair {
		s.loaded(in.Rt2, v2, plus(addr, 8))
	}
}

func (s state) loaded(reg uint8, v, addr arch.Loc) {
	s.set(reg, v)
	if reg == x30 {
		s.RAAt = addr
	}
}

func (s state) stores(in *inst, addr arch.Loc) {
	v, v2 := s.get(in.Rd), arch.Loc{}
	if in.Narrow {
		v = arch.Loc{}
	}
	s.store(addr, v)
	if in.Pair {
		if !in.Narrow {
			v2 = s.get(in.Rt2)
		}
		s.store(plus(addr, 8), v2)
	}
}
