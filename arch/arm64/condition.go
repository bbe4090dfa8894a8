package arm64

import (
	"encoding/binary"

	"goprof/arch"
)

// Condition is described at arch.Code. cbz, cbnz, tbz and tbnz need no comparison before them.
func (code) Condition(code []byte, compare, branch uint32) (c arch.Condition, ok bool) {
	if uint64(max(compare, branch))+4 > uint64(len(code)) {
		return c, false
	}
	w, b := binary.LittleEndian.Uint32(code[compare:]), binary.LittleEndian.Uint32(code[branch:])
	if compare == branch {
		return ownCondition(b)
	}
	c.Wide = w>>31 == 1
	switch {
	case w&0x7f80001f == 0x7100001f, w&0x7f80001f == 0x3100001f: // cmp, cmn with a constant
		c.Constant, c.Value = true, int64(w>>10&0xfff)<<(w>>22&1*12)
		if w>>30&1 == 0 {
			c.Value = -c.Value
		}
	case w&0x7fe0fc1f == 0x6b00001f: // cmp of registers
		c.Value, c.Constant = constantBefore(code, compare, uint8(field(w, 16, 5)), c.Wide)
	default:
		return c, false
	}
	if b&0xff000010 != 0x54000000 { // b.cond
		return c, false
	}
	withZero := false
	switch b & 15 {
	case 0:
		c.Is = arch.Equal
	case 1:
		c.Is = arch.NotEqual
	case 4: // mi, pl
		c.Is, withZero = arch.Less, true
	case 5:
		c.Is, withZero = arch.NotLess, true
	case 10:
		c.Is = arch.NotLess
	case 11:
		c.Is = arch.Less
	case 12:
		c.Is = arch.Greater
	case 13:
		c.Is = arch.NotGreater
	default:
		return c, false // relations of unsigned numbers
	}
	return c, !withZero || c.Constant && c.Value == 0
}

// constantBefore returns the constant that the instruction before another one puts into a register. C1 puts null into a
// register to compare with it, and so every number that does not fit into the comparison.
func constantBefore(code []byte, at uint32, register uint8, wide bool) (value int64, ok bool) {
	var in inst
	if at < 4 || !decode(code[at-4:], &in) || in.Rd != register {
		return 0, false
	}
	switch {
	case in.Op == opMov && in.Rm == zr:
		return 0, true
	case in.Op != opConst:
		return 0, false
	case !wide:
		in.Imm = int64(int32(in.Imm))
	}
	return in.Imm, true
}

// ownCondition returns the condition of a branch that compares a register with zero, or tests its sign.
func ownCondition(b uint32) (c arch.Condition, ok bool) {
	c.Wide, c.Constant = b>>31 == 1, true
	not := arch.Relation(b >> 24 & 1)
	switch {
	case b&0x7e000000 == 0x34000000: // cbz, cbnz
		c.Is = arch.Equal + not
	case b&0x7ef80000 == 0x36f80000: // tbz, tbnz of the highest bit
		c.Is = arch.NotLess - not
	default:
		return c, false
	}
	return c, true
}
