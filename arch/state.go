package arch

import (
	"math"
	"slices"
)

// State is the machine on one path of a Follower: the registers, in terms of the registers at the start, and the words
// stored to the stack since.
type State struct {
	PC      uint32 // offset in the code
	Calls   bool   // the path went past a call
	Patched bool   // the return address of the standard frame at the start was written
	Lost    bool   // the path has lost its stack pointer; one that has not may still reach the same instructions
	Regs    [32]Loc
	Saved   Loc // the Loc that SavedSP stands for
	// RAAt is where the link register was loaded from. Dead is how far above the frame pointer the stack pointer has
	// been: the words below were dropped. Only a CPU that ReturnsInRegister uses these.
	RAAt Loc
	Dead int32

	tokens uint8
	stored uint8
	slots  [MaxSlots]slot
}

type slot struct {
	reg uint8
	off int32
	val Loc
}

const (
	// MaxSlots is how many stored words a State remembers.
	MaxSlots = 24
	// FirstToken is the first of the pseudo registers: stack pointers of unknown origin.
	FirstToken = 64

	noReg = 0xff // no address is relative to it
)

// Begin makes every register hold itself.
func (s *State) Begin(pc uint32) {
	*s = State{PC: pc, Dead: math.MinInt32}
	for i := range s.Regs {
		s.Regs[i] = RegPlus(uint8(i), 0)
	}
}

// Token returns a Loc for a stack pointer of unknown origin.
func (s *State) Token() Loc {
	s.tokens++
	return RegPlus(FirstToken+s.tokens%64, 0)
}

// Stored returns the value that was stored at addr on this path, false if none was.
func (s *State) Stored(addr Loc) (Loc, bool) {
	if addr.Kind != Value {
		return Loc{}, false
	}
	i := s.slot(addr)
	if i < 0 {
		return Loc{}, false
	}
	return s.slots[i].val, true
}

func (s *State) slot(addr Loc) int {
	return slices.IndexFunc(s.slots[:s.stored],
		func(slot slot) bool { return slot.reg == addr.Reg && slot.off == addr.Off })
}

// Store remembers the value v at addr. If all slots are used, it forgets the word whose last store is the oldest. There
// are enough slots for code that stored its return address long ago, before a barrier spilled all registers.
func (s *State) Store(addr, v Loc) {
	old := s.slot(addr)
	if old < 0 && int(s.stored) == len(s.slots) {
		old = 0
	}
	if old >= 0 {
		copy(s.slots[old:s.stored], s.slots[old+1:s.stored])
		s.stored--
	}
	s.slots[s.stored] = slot{addr.Reg, addr.Off, v}
	s.stored++
}

// Overwrite forgets the words that overlap the bytes from addr on.
func (s *State) Overwrite(addr Loc, bytes int32) {
	for i := range s.slots[:s.stored] {
		slot := &s.slots[i]
		if addr.Kind == Value && slot.reg == addr.Reg && slot.off > addr.Off-8 && slot.off < addr.Off+bytes {
			slot.val = Loc{}
		}
	}
}

// TakeSaved returns the Loc of a stack pointer that lay in memory at the start. From here on values are relative to it,
// and values relative to an earlier saved one are forgotten.
func (s *State) TakeSaved(from Loc) (sp Loc) {
	if s.Saved != from && s.Saved.Kind != Unknown {
		s.forgetSaved()
	}
	s.Saved = from
	return RegPlus(SavedSP, 0)
}

// forgetSaved forgets all values that are relative to a saved stack pointer.
func (s *State) forgetSaved() {
	for i := range s.Regs {
		if s.Regs[i].Reg == SavedSP {
			s.Regs[i] = Loc{}
		}
	}
	for i := range s.slots[:s.stored] {
		slot := &s.slots[i]
		if slot.reg == SavedSP || slot.val.Reg == SavedSP {
			slot.val = Loc{}
		}
		if slot.reg == SavedSP {
			slot.reg = noReg
		}
	}
}

// Plain returns l without pseudo registers, for other packages: a stack pointer of unknown origin becomes an unknown
// Loc.
func Plain(l Loc) Loc {
	if l.Reg >= FirstToken {
		return Loc{}
	}
	return l
}
