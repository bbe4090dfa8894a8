package amd64

import "goprof/arch"

// Condition is described at arch.Code.
func (code) Condition(code []byte, compare, branch uint32) (c arch.Condition, ok bool) {
	var cmp, jcc inst
	if uint64(max(compare, branch)) >= uint64(len(code)) || code[compare] == operandSize ||
		!decode(code[compare:], &cmp) || !decode(code[branch:], &jcc) || cmp.Map != 0 || cmp.Vec {
		return c, false
	}
	c.Wide, c.InMemory = cmp.W, cmp.Mem
	switch op := cmp.Op; {
	case op == 0x85 && !cmp.Mem && cmp.Reg == cmp.RM: // test of a register with itself
		c.Constant = true
	case op == 0x39, op == 0x3b: // cmp
	case op == 0x3d, (op == 0x81 || op == 0x83) && cmp.OpX == 7: // cmp with a constant
		c.Constant, c.Value = true, cmp.Imm
	default:
		return c, false
	}
	var withZero bool
	c.Is, withZero, ok = relation(&jcc)
	return c, ok && (!withZero || c.Constant && c.Value == 0)
}

// operandSize is the prefix of instructions that have 16 bits.
const operandSize = 0x66

// relation returns the relation under which a jump is taken. withZero: the jump tests the sign of a difference, which
// gives the relation only if the second number is zero.
func relation(jcc *inst) (is arch.Relation, withZero, ok bool) {
	if jcc.Map == 0 && jcc.Op&^15 != 0x70 || jcc.Map == 1 && jcc.Op&^15 != 0x80 || jcc.Map > 1 || jcc.Vec {
		return 0, false, false
	}
	switch jcc.Op & 15 {
	case 4:
		return arch.Equal, false, true
	case 5:
		return arch.NotEqual, false, true
	case 8:
		return arch.Less, true, true
	case 9:
		return arch.NotLess, true, true
	case 12:
		return arch.Less, false, true
	case 13:
		return arch.NotLess, false, true
	case 14:
		return arch.NotGreater, false, true
	case 15:
		return arch.Greater, false, true
	}
	return 0, false, false // relations of unsigned numbers, or of doubles
}
