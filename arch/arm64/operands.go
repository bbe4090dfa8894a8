package arm64

import (
	"encoding/binary"

	"goprof/arch"
)

// Operands is described at arch.Code. It knows the instructions that compilers make most often of arithmetic, loads and
// comparisons (Arm ARM, DDI 0487, C4.1). A load or a store of vectors reads the registers of its address.
func (code) Operands(code []byte, at uint32) (o arch.Operands, ok bool) {
	if uint64(at)+4 > uint64(len(code)) {
		return o, false
	}
	w := binary.LittleEndian.Uint32(code[at:])
	r := operandRegs{rd: reg(w, 0), rn: reg(w, 5), rm: reg(w, 16)}
	switch w >> 25 & 15 {
	case 0b1000, 0b1001:
		if o, ok = r.immediate(w); isLong(w) {
			o.Constant = longConstant(code, at)
		}
		return o, ok
	case 0b0101, 0b1101:
		return r.register(w)
	case 0b0100, 0b0110, 0b1100, 0b1110:
		return r.memory(w)
	case 0b0111, 0b1111:
		return r.vector(w)
	case 0b1010, 0b1011:
		return r.branch(w)
	}
	return o, false
}

// operandRegs has the registers at the places where most instructions name them, each as a bit. The zero register has
// no bit.
type operandRegs struct{ rd, rn, rm uint32 }

// reg returns the bit of the register whose number begins at bit lo of w. The zero register has no bit.
func reg(w uint32, lo int) uint32 { return 1 << field(w, lo, 5) &^ (1 << 31) }

// regOrSP returns the bit of a register whose number 31 is the stack pointer.
func regOrSP(w uint32, lo int) uint32 { return 1 << field(w, lo, 5) }

// computes returns the operands of an instruction that does arithmetic. An instruction that writes no register is a
// comparison.
func computes(reads, writes uint32) (arch.Operands, bool) {
	return arch.Operands{Reads: reads, Writes: writes, Computes: writes&^(1<<31) != 0}, true
}

func (r *operandRegs) immediate(w uint32) (arch.Operands, bool) {
	flags := field(w, 29, 1) == 1
	switch field(w, 23, 3) {
	case 0, 1: // adr, adrp
		return arch.Operands{Writes: r.rd}, true
	case 2: // add, sub
		if flags {
			return computes(regOrSP(w, 5), r.rd)
		}
		return computes(regOrSP(w, 5), regOrSP(w, 0))
	case 4: // logical
		if field(w, 29, 2) == 3 {
			return computes(r.rn, r.rd)
		}
		if r.rn == 0 { // mov of a mask
			return arch.Operands{Writes: regOrSP(w, 0)}, true
		}
		return computes(r.rn, regOrSP(w, 0))
	case 5: // movn, movz, movk
		if field(w, 29, 2) == 3 {
			return arch.Operands{Reads: r.rd, Writes: r.rd}, true
		}
		return arch.Operands{Writes: r.rd}, true
	case 6: // sbfm, bfm, ubfm
		if field(w, 29, 2) == 1 {
			return computes(r.rn|r.rd, r.rd)
		}
		return computes(r.rn, r.rd)
	case 7: // extr
		return computes(r.rn|r.rm, r.rd)
	}
	return arch.Operands{}, false
}

// isLong reports whether an instruction puts a part of the upper half of a constant into a register: movz, movk.
func isLong(w uint32) bool {
	return w&0xdf800000 == 0xd2800000 && field(w, 22, 1) == 1 && w&31 != 31
}

// maxParts is how many instructions make a constant of 64 bits at most.
const maxParts = 4

// longConstant returns what a register holds behind an instruction that isLong. It returns 0 if the instructions before
// do not begin that constant.
func longConstant(code []byte, at uint32) (value uint64) {
	last := binary.LittleEndian.Uint32(code[at:])
	for n := 0; n < maxParts; n, at = n+1, at-4 {
		w := binary.LittleEndian.Uint32(code[at:])
		if w&0xdf80001f != 0xd2800000|last&31 { // movz, movk of the same register
			break
		}
		value |= uint64(field(w, 5, 16)) << (16 * field(w, 21, 2))
		if w>>29&3 == 2 { // movz
			return value
		}
		if at < 4 {
			break
		}
	}
	return 0
}

func (r *operandRegs) register(w uint32) (arch.Operands, bool) {
	op := field(w, 21, 4)
	if field(w, 28, 1) == 0 {
		switch {
		case op < 8 && op&1 == 0 && r.rn == 0 && field(w, 29, 2) == 1 && field(w, 10, 6) == 0: // orr with zero: a copy
			return arch.Operands{Reads: r.rm, Writes: r.rd}, true
		case op&9 != 9: // logical; add, sub
			return computes(r.rn|r.rm, r.rd)
		case field(w, 29, 1) == 1: // add, sub with an extended register
			return computes(regOrSP(w, 5)|r.rm, r.rd)
		}
		return computes(regOrSP(w, 5)|r.rm, regOrSP(w, 0))
	}
	switch {
	case op == 0 && field(w, 10, 6) == 0: // adc, sbc
		return computes(r.rn|r.rm, r.rd)
	case op == 2 && field(w, 11, 1) == 0: // ccmp
		return arch.Operands{Reads: r.rn | r.rm}, true
	case op == 2: // ccmp, ccmn with a constant
		return arch.Operands{Reads: r.rn}, true
	case op == 4: // csel
		return arch.Operands{Reads: r.rn | r.rm, Writes: r.rd}, true
	case op == 6 && field(w, 30, 1) == 1: // rbit, rev, clz
		return computes(r.rn, r.rd)
	case op == 6: // division, shifts
		return computes(r.rn|r.rm, r.rd)
	case op >= 8: // madd
		return computes(r.rn|r.rm|reg(w, 10), r.rd)
	}
	return arch.Operands{}, false
}

// memory returns the operands of loads and stores that do nothing else.
func (r *operandRegs) memory(w uint32) (o arch.Operands, ok bool) {
	vector, base := field(w, 26, 1) == 1, regOrSP(w, 5)
	general := r.rd
	if vector {
		general = 0
	}
	load := false
	switch {
	case field(w, 27, 3) == 5: // pairs
		if !vector {
			general |= reg(w, 10)
		}
		load, o.Reads = field(w, 22, 1) == 1, base
		if mode := field(w, 23, 2); mode&1 == 1 { // pre- or post-indexed: the base register changes
			o.Writes = base
		}
	case field(w, 27, 3) != 7:
		return o, false
	default:
		opc := field(w, 22, 2)
		load, o.Reads = opc != 0, base
		if vector {
			load = opc&1 == 1
		} else if field(w, 30, 2) == 3 && opc == 2 { // prfm
			general = 0
		}
		switch {
		case field(w, 24, 2) == 1: // a load or a store at an offset
		case field(w, 21, 1) == 0:
			if field(w, 10, 1) == 1 { // pre- or post-indexed: the base register changes
				o.Writes = base
			}
		case field(w, 10, 2) == 2: // a load or a store at an index
			o.Reads |= r.rm
		default:
			return o, false // atomic operations
		}
	}
	if load {
		o.Writes |= general
	} else {
		o.Reads |= general
	}
	return o, true
}

// vector returns the operands of a vector or floating-point instruction. Vectors themselves do not count.
func (r *operandRegs) vector(w uint32) (o arch.Operands, ok bool) {
	if w&0x5f20fc00 == 0x1e200000 { // conversions, and copies between both kinds of registers
		switch field(w, 16, 3) {
		case 2, 3, 7: // scvtf, ucvtf, fmov
			return arch.Operands{Reads: r.rn}, true
		}
		return arch.Operands{Writes: r.rd}, true
	}
	if w&0x5f200000 == 0x1e000000 || w&0x9fe08400 == 0x0e000400 { // fixed point; copies of elements
		return o, false
	}
	return o, true
}

func (r *operandRegs) branch(w uint32) (o arch.Operands, ok bool) {
	switch {
	case w>>24 == 0x54, w>>26 == 0x05, w == 0xd503201f: // b.cond, b, nop
		return o, true
	case field(w, 25, 6) == 0x1a, field(w, 25, 6) == 0x1b: // cbz, tbz
		o.Reads = r.rd
		return o, true
	}
	return o, false
}
