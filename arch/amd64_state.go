package arch

import "slices"

// amd64State is the machine on one way: what each register holds, told in terms of
// the registers at the start, and what was stored to the stack since.
type amd64State struct {
	pc     uint32 // offset in the code
	tokens uint8
	calls  bool
	patch  bool // the return address of the standard frame at the start was written
	nslots uint8
	saved  Loc // what SavedSP stands for
	regs   [16]Loc
	slots  [maxTraceSlots]amd64Slot
}

type amd64Slot struct {
	reg uint8
	off int32
	val Loc
}

// movLoad: mov r, r/m.
func (s *amd64State) movLoad(in *x86Inst) {
	v := Loc{}
	if in.W {
		v = s.operand(in)
	}
	s.set(in.Reg, v)
}

func (s *amd64State) movStore(in *x86Inst) {
	v := Loc{}
	if in.W && in.Op == 0x89 {
		v = s.get(in.Reg)
	}
	if !in.Mem {
		s.set(in.RM, v)
		return
	}
	if addr := s.address(in); addr.Kind == Value {
		s.patch = s.patch || addr == (Loc{Value, amd64RBP, 8})
		s.store(addr, v)
	}
}

// takeSavedSP deals with a stack pointer that has just come out of the stack, from a word that
// was there at the start: code that moves the stack pointer by an amount of its own saves it
// there before (C2's string_indexof), or its frame pointer (the stubs of the SHA-2 digests). From
// here on all is told relative to it, and nothing to one that came before.
func (s *amd64State) takeSavedSP() {
	sp := s.regs[amd64RSP]
	if sp.Kind != AtMem || sp.Reg != amd64RSP || sp.Off < 0 {
		return
	}
	if s.saved != sp && s.saved.Kind != Unknown {
		s.forgetSavedSP()
	}
	s.saved = sp
	s.regs[amd64RSP] = Loc{Value, SavedSP, 0}
}

// forgetSavedSP forgets all that is told relative to a stack pointer that was saved.
func (s *amd64State) forgetSavedSP() {
	for i := range s.regs {
		if s.regs[i].Reg == SavedSP {
			s.regs[i] = Loc{}
		}
	}
	for i := range s.slots[:s.nslots] {
		if slot := &s.slots[i]; slot.reg == SavedSP || slot.val.Reg == SavedSP {
			slot.val = Loc{}
		}
		if slot := &s.slots[i]; slot.reg == SavedSP {
			slot.reg = noReg
		}
	}
}

func (s *amd64State) get(hw uint8) Loc    { return s.regs[x86Dwarf[hw&15]] }
func (s *amd64State) set(hw uint8, v Loc) { s.regs[x86Dwarf[hw&15]] = v }

func (s *amd64State) moveSP(n int32) {
	if s.regs[amd64RSP].Kind == Value {
		s.regs[amd64RSP].Off += n
	}
}

// address is the memory operand's address, if it can be told.
func (s *amd64State) address(in *x86Inst) Loc {
	if in.Base < 0 || in.Idx {
		return Loc{}
	}
	v := s.get(uint8(in.Base))
	if v.Kind != Value {
		return Loc{}
	}
	v.Off += in.Disp
	return v
}

// operand is the value of the r/m operand.
func (s *amd64State) operand(in *x86Inst) Loc {
	if !in.Mem {
		return s.get(in.RM)
	}
	return s.load(s.address(in))
}

func (s *amd64State) load(addr Loc) Loc {
	if addr.Kind != Value {
		return Loc{}
	}
	if v, ok := s.stored(addr); ok {
		return v
	}
	if addr.Reg >= firstToken {
		return Loc{}
	}
	return Loc{AtMem, addr.Reg, addr.Off}
}

// stored returns what was stored at addr on the way here.
func (s *amd64State) stored(addr Loc) (Loc, bool) {
	for i := int(s.nslots) - 1; i >= 0 && addr.Kind == Value; i-- {
		if s.slots[i].reg == addr.Reg && s.slots[i].off == addr.Off {
			return s.slots[i].val, true
		}
	}
	return Loc{}, false
}

func (s *amd64State) store(addr, v Loc) {
	if addr.Kind != Value || addr.Reg != amd64RBP && addr.Reg != s.regs[amd64RSP].Reg {
		return // not on the stack
	}
	// The oldest is forgotten, by its last store: where a barrier has spilled all registers
	// just before, the slot that the return address moves to has been stored to long ago, too.
	old := slices.IndexFunc(s.slots[:s.nslots], func(slot amd64Slot) bool { return slot.reg == addr.Reg && slot.off == addr.Off })
	if old < 0 && int(s.nslots) == len(s.slots) {
		old = 0
	}
	if old >= 0 {
		copy(s.slots[old:s.nslots], s.slots[old+1:s.nslots])
		s.nslots--
	}
	s.slots[s.nslots] = amd64Slot{addr.Reg, addr.Off, v}
	s.nslots++
}
