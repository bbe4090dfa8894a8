package amd64

import "goprof/arch"

// state is a State as this CPU's instructions see it.
type state struct{ *arch.State }

// movLoad: mov r, r/m.
func (s state) movLoad(in *inst) {
	v := arch.Loc{}
	if in.W {
		v = s.operand(in)
	}
	s.set(in.Reg, v)
}

func (s state) movStore(in *inst) {
	v := arch.Loc{}
	if in.W && in.Op == 0x89 {
		v = s.get(in.Reg)
	}
	if !in.Mem {
		s.set(in.RM, v)
		return
	}
	if addr := s.address(in); addr.Kind == arch.Value {
		s.Patched = s.Patched || addr == arch.RegPlus(rbp, 8)
		s.store(addr, v)
	}
}

// takeSavedSP deals with a stack pointer that was just loaded from the stack, from a word that was there before the
// traced code began. Code that moves the stack pointer by a computed amount first saves it there (C2's string_indexof),
// or saves its frame pointer (the stubs of the SHA-2 digests). From now on all places on the stack are relative to the
// loaded value, and places relative to an earlier stack pointer are forgotten.
func (s state) takeSavedSP() {
	sp := s.Regs[rsp]
	if sp.Kind != arch.AtMem || sp.Reg != rsp || sp.Off < 0 {
		return
	}
	s.Regs[rsp] = s.TakeSaved(sp)
}

func (s state) get(hw uint8) arch.Loc    { return s.Regs[dwarf[hw&15]] }
func (s state) set(hw uint8, v arch.Loc) { s.Regs[dwarf[hw&15]] = v }

func (s state) moveSP(n int32) {
	if s.Regs[rsp].Kind == arch.Value {
		s.Regs[rsp].Off += n
	}
}

// address returns the memory operand's address, if it is known.
func (s state) address(in *inst) arch.Loc {
	if in.Base < 0 || in.Idx {
		return arch.Loc{}
	}
	v := s.get(uint8(in.Base))
	if v.Kind != arch.Value {
		return arch.Loc{}
	}
	v.Off += in.Disp
	return v
}

// operand returns the value of the r/m operand.
func (s state) operand(in *inst) arch.Loc {
	if !in.Mem {
		return s.get(in.RM)
	}
	return s.load(s.address(in))
}

func (s state) load(addr arch.Loc) arch.Loc {
	if addr.Kind != arch.Value {
		return arch.Loc{}
	}
	if v, ok := s.Stored(addr); ok {
		return v
	}
	if addr.Reg >= arch.FirstToken {
		return arch.Loc{}
	}
	return arch.MemAt(addr.Reg, addr.Off)
}

func (s state) store(addr, v arch.Loc) {
	if addr.Kind != arch.Value || addr.Reg != rbp && addr.Reg != s.Regs[rsp].Reg {
		return // not on the stack
	}
	s.Store(addr, v)
}
