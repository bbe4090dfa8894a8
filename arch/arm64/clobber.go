package arm64

import "goprof/arch"

// The tracer does not model some instructions. It forgets the registers that they write. The decoder says which
// registers these are (inst.Writes). A test compares the decoder with objdump (TestDecodeAgainstObjdump).

// clobber forgets the registers of a set. A stack pointer that is forgotten has an unknown origin from then on.
func (s state) clobber(regs uint32) {
	for r := uint8(0); regs != 0; r, regs = r+1, regs>>1 {
		if regs&1 != 0 {
			s.set(r, arch.Loc{})
		}
	}
}

// afterCall forgets what a callee may change.
func (s state) afterCall() {
	s.Calls = true
	for r := range x19 {
		s.Regs[r] = arch.Loc{}
	}
	s.set(x30, arch.Loc{})
}
