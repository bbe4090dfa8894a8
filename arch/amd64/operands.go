package amd64

import (
	"encoding/binary"

	"goprof/arch"
)

// Operands is described at arch.Code. It knows the instructions that compilers make most often of arithmetic, loads and
// comparisons.
func (code) Operands(code []byte, at uint32) (o arch.Operands, ok bool) {
	var in inst
	if uint64(at) >= uint64(len(code)) || !decode(code[at:], &in) || in.Map > 1 {
		return o, false
	}
	rm := uint32(1) << in.RM
	if in.Mem {
		rm = 0
		if in.Base >= 0 {
			o.Reads = 1 << in.Base
		}
		if in.Idx {
			o.Reads |= 1 << in.Index
		}
	}
	reg := uint32(1) << in.Reg
	if in.Map == 1 || in.Vec {
		return in.operands0F(o, reg, rm)
	}
	const rax, rcx, rdx = 1 << 0, 1 << 1, 1 << 2
	switch op := in.Op; {
	case op < 0x38 && op&7 < 6 && op&7 != 4: // add, or, adc, sbb, and, sub, xor
		return arithmetic(o, op, reg, rm)
	case op >= 0x38 && op <= 0x3b, op == 0x84, op == 0x85: // cmp, test
		o.Reads |= reg | rm
	case op == 0x3c, op == 0x3d, op == 0xa8, op == 0xa9: // cmp, test of rax
		o.Reads |= rax
	case op >= 0x80 && op <= 0x83, (op == 0xf6 || op == 0xf7) && in.OpX < 4, op == 0xff && in.OpX < 2,
		op == 0xc1, op == 0xd1: // arithmetic with a constant; test, not, neg; inc, dec; shifts
		o.Reads |= rm
		if !(op <= 0x83 && in.OpX == 7 || op&^1 == 0xf6 && in.OpX < 2) {
			o.Writes, o.Computes = rm, !in.Mem
		}
	case op == 0xd3: // shifts
		o.Reads |= rm | rcx
		o.Writes, o.Computes = rm, !in.Mem
	case op == 0xf7 && in.OpX >= 6: // div
		o.Reads |= rm | rax | rdx
		o.Writes, o.Computes = rax|rdx, !in.Mem
	case op == 0x99: // cdq
		o.Reads, o.Writes, o.Computes = rax, rdx, true
	case op == 0x63, op == 0x69, op == 0x6b, op == 0x8d: // movsxd, imul, lea
		o.Reads |= rm
		o.Writes, o.Computes = reg, !in.Mem || op == 0x8d
	case op == 0x8b:
		o.Reads |= rm
		o.Writes = reg
	case op == 0x88, op == 0x89:
		o.Reads |= reg
		o.Writes = rm
	case op&^7 == 0xb8, op == 0xc6, op == 0xc7: // constants
		o.Writes = rm
		if in.W && op < 0xc0 { // movabs
			o.Constant = binary.LittleEndian.Uint64(code[int(at)+in.Len-8:])
		}
	case op >= 0x70 && op <= 0x7f, op == 0xe9, op == 0xeb, op == 0x90 && in.RM == 0: // jcc, jmp, nop
	default:
		return o, false
	}
	return o, true
}

// arithmetic returns the operands of an instruction with two registers, or one and memory. Bit 1 of its opcode says
// which is written.
func arithmetic(o arch.Operands, op uint8, reg, rm uint32) (arch.Operands, bool) {
	switch {
	case op&7 == 5: // rax and a constant
		reg, rm = 1, 0
		fallthrough
	case op&2 != 0:
		o.Writes = reg
	default:
		o.Writes = rm
	}
	o.Reads |= reg | rm
	o.Computes = rm != 0 || op&7 == 5
	return o, true
}

// operands0F returns the operands of an instruction of the second table, or of one of vectors. Vectors themselves do
// not count.
func (in *inst) operands0F(o arch.Operands, reg, rm uint32) (arch.Operands, bool) {
	switch op := in.Op; {
	case in.Vec || op >= 0x10 && op <= 0x17 || op >= 0x28 && op <= 0x29 || op >= 0x51 && op <= 0x7f ||
		op == 0x2e || op == 0x2f || op >= 0xd0:
		switch {
		case op == 0x2a, op == 0x6e, op == 0xc4: // cvtsi2sd, movd, pinsrw
			o.Reads |= rm
		case op == 0x7e && !in.Rep:
			o.Writes = rm
		case op == 0x2c, op == 0x2d, op == 0x50, op == 0xd7, op == 0xc5, op >= 0x90 && op <= 0x9f:
			return o, false // they write a general register
		}
	case op >= 0x40 && op <= 0x4f, op == 0xaf: // cmov, imul
		o.Reads |= reg | rm
		o.Writes, o.Computes = reg, !in.Mem && op == 0xaf
	case op == 0xb6, op == 0xb7, op == 0xbe, op == 0xbf: // movzx, movsx
		o.Reads |= rm
		o.Writes, o.Computes = reg, !in.Mem
	case op == 0x1f: // nop: its operand is never used
		o.Reads = 0
	case op >= 0x80 && op <= 0x8f, op == 0x0d, op == 0x18: // jcc, prefetch
	default:
		return o, false
	}
	return o, true
}
