package amd64

import (
	"slices"

	"goprof/arch"
)

// state is the machine on one way: what each register holds, told in terms of
// the registers at the start, and what was stored to the stack since.
type state struct {
	pc     uint32 // offset in the code
	tokens uint8
	calls  bool
	patch  bool // the return address of the standard frame at the start was written
	nslots uint8
	saved  arch.Loc // what SavedSP stands for
	regs   [16]arch.Loc
	slots  [arch.MaxSlots]slot
}

type slot struct {
	reg uint8
	off int32
	val arch.Loc
}

// movLoad: mov r, r/m.
func (s *state) movLoad(in *inst) {
	v := arch.Loc{}
	if in.W {
		v = s.operand(in)
	}
	s.set(in.Reg, v)
}

func (s *state) movStore(in *inst) {
	v := arch.Loc{}
	if in.W && in.Op == 0x89 {
		v = s.get(in.Reg)
	}
	if !in.Mem {
		s.set(in.RM, v)
		return
	}
	if addr := s.address(in); addr.Kind == arch.Value {
		s.patch = s.patch || addr == (arch.RegPlus(rbp, 8))
		s.store(addr, v)
	}
}

// takeSavedSP deals with a stack pointer that has just come out of the stack, from a word that
// was there at the start: code that moves the stack pointer by an amount of its own saves it
// there before (C2's string_indexof), or its frame pointer (the stubs of the SHA-2 digests). From
// here on all is told relative to it, and nothing to one that came before.
func (s *state) takeSavedSP() {
	sp := s.regs[rsp]
	if sp.Kind != arch.AtMem || sp.Reg != rsp || sp.Off < 0 {
		return
	}
	if s.saved != sp && s.saved.Kind != arch.Unknown {
		s.forgetSavedSP()
	}
	s.saved = sp
	s.regs[rsp] = arch.RegPlus(arch.SavedSP, 0)
}

// forgetSavedSP forgets all that is told relative to a stack pointer that was saved.
func (s *state) forgetSavedSP() {
	for i := range s.regs {
		if s.regs[i].Reg == arch.SavedSP {
			s.regs[i] = arch.Loc{}
		}
	}
	for i := range s.slots[:s.nslots] {
		if slot := &s.slots[i]; slot.reg == arch.SavedSP || slot.val.Reg == arch.SavedSP {
			slot.val = arch.Loc{}
		}
		if slot := &s.slots[i]; slot.reg == arch.SavedSP {
			slot.reg = arch.NoReg
		}
	}
}

func (s *state) get(hw uint8) arch.Loc    { return s.regs[dwarf[hw&15]] }
func (s *state) set(hw uint8, v arch.Loc) { s.regs[dwarf[hw&15]] = v }

func (s *state) moveSP(n int32) {
	if s.regs[rsp].Kind == arch.Value {
		s.regs[rsp].Off += n
	}
}

// address is the memory operand's address, if it can be told.
func (s *state) address(in *inst) arch.Loc {
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

// operand is the value of the r/m operand.
func (s *state) operand(in *inst) arch.Loc {
	if !in.Mem {
		return s.get(in.RM)
	}
	return s.load(s.address(in))
}

func (s *state) load(addr arch.Loc) arch.Loc {
	if addr.Kind != arch.Value {
		return arch.Loc{}
	}
	if v, ok := s.stored(addr); ok {
		return v
	}
	if addr.Reg >= arch.FirstToken {
		return arch.Loc{}
	}
	return arch.MemAt(addr.Reg, addr.Off)
}

// stored returns what was stored at addr on the way here.
func (s *state) stored(addr arch.Loc) (arch.Loc, bool) {
	for i := int(s.nslots) - 1; i >= 0 && addr.Kind == arch.Value; i-- {
		if s.slots[i].reg == addr.Reg && s.slots[i].off == addr.Off {
			return s.slots[i].val, true
		}
	}
	return arch.Loc{}, false
}

func (s *state) store(addr, v arch.Loc) {
	if addr.Kind != arch.Value || addr.Reg != rbp && addr.Reg != s.regs[rsp].Reg {
		return // not on the stack
	}
	// The oldest is forgotten, by its last store: where a barrier has spilled all registers
	// just before, the slot that the return address moves to has been stored to long ago, too.
	old := slices.IndexFunc(s.slots[:s.nslots], func(slot slot) bool { return slot.reg == addr.Reg && slot.off == addr.Off })
	if old < 0 && int(s.nslots) == len(s.slots) {
		old = 0
	}
	if old >= 0 {
		copy(s.slots[old:s.nslots], s.slots[old+1:s.nslots])
		s.nslots--
	}
	s.slots[s.nslots] = slot{addr.Reg, addr.Off, v}
	s.nslots++
}
