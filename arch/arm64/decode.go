package arm64

import (
	"encoding/binary"
	"math/bits"
)

// inst is one A64 instruction (Arm ARM, DDI 0487, chapter C4). It is decoded just far enough to follow the stack
// pointer, the frame pointer, the link register and the words that move between registers and the stack. For all other
// instructions it says only which general registers they write. All instructions have four bytes, so their length
// cannot be misread.
type inst struct {
	Op     opcode
	Rd     uint8 // the register that is written; of stores and branches, the one that is read
	Rt2    uint8 // the second register of a Pair
	Rn, Rm uint8
	Imm    int64  // a constant, an offset, or a branch's distance in bytes
	Writes uint32 // opOther: the general registers that it writes, by bit; 31 is sp
	Index  indexing
	Pair   bool
	Narrow bool  // a store or load of less than 8 bytes, or of vector registers
	Bytes  uint8 // a store or load of other than general registers: how much memory at most
}

// zr stands for the zero register where an operand may be that register. In an inst, 31 is always the stack pointer.
const zr = 0xff

type opcode uint8

const (
	opOther  opcode = iota
	opAdd           // Rd = Rn + Imm
	opAddReg        // Rd = Rn + (Rm << Imm); a negative Imm stands for any other shift or extension
	opSubReg
	opAnd   // Rd = Rn & a mask that only aligns
	opMov   // Rd = Rm
	opConst // Rd = Imm
	opKeep  // Rd = Rd with 16 bits replaced: Imm << Rm
	opNear  // Rd = the address Imm bytes from here
	opAddr  // Rd = an address in or near the code
	opSign  // Rd is signed, or its signature checked or removed
	opLoad
	opStore
	opBranch // b
	opCond   // goes on behind the branch, or at Imm
	opCall   // bl, blr
	opJump   // br: Rn
	opRet    // ret: Rn
	opTrap
	opBad // not known: such code is not followed
)

// indexing says how a load or a store changes its base register.
type indexing uint8

const (
	indexOffset  indexing = iota
	indexPost             // Rn += Imm afterwards
	indexPre              // Rn += Imm before
	indexPostReg          // Rn += Rm afterwards
	indexNoAddr           // the address is not base and offset
)

func decode(b []byte, in *inst) bool {
	if len(b) < 4 {
		return false
	}
	w := binary.LittleEndian.Uint32(b)
	*in = inst{Rd: uint8(w & 31), Rn: uint8(w >> 5 & 31), Rm: uint8(w >> 16 & 31), Rt2: zr}
	switch w >> 25 & 15 {
	case 0b0010:
		in.sve(w)
	case 0b1000, 0b1001:
		in.immediate(w)
	case 0b1010, 0b1011:
		in.branch(w)
	case 0b0100, 0b0110, 0b1100, 0b1110:
		in.memory(w)
	case 0b0101, 0b1101:
		in.register(w)
	case 0b0111, 0b1111:
		in.vector(w)
	default: // udf, SME
		in.Op = opBad
	}
	return in.Op != opBad
}

// field returns n bits of w from bit lo.
func field(w uint32, lo, n int) uint32 { return w >> lo & (1<<n - 1) }

// sext returns n bits of w from bit lo as a signed number.
func sext(w uint32, lo, n int) int64 { return int64(w) << (64 - lo - n) >> (64 - n) }

// orZR returns zr for 31, which stands for the zero register here, and r for any other register.
func orZR(r uint8) uint8 {
	if r == 31 {
		return zr
	}
	return r
}

// writes makes the instruction an opOther that writes these registers. 31 is the zero register.
func (in *inst) writes(regs ...uint8) {
	in.Op = opOther
	for _, r := range regs {
		if r < 31 {
			in.Writes |= 1 << r
		}
	}
}

// writesOrSP is writes for an instruction whose register 31 is the stack pointer.
func (in *inst) writesOrSP(r uint8) { in.Op, in.Writes = opOther, 1<<r }

// immediate decodes C4.1.92, data processing with an immediate.
func (in *inst) immediate(w uint32) {
	wide := w>>31 == 1
	switch field(w, 23, 3) {
	case 0, 1: // adr, adrp
		in.Op, in.Rd = opNear, orZR(in.Rd)
		if in.Imm = sext(w, 5, 19)<<2 | int64(field(w, 29, 2)); wide {
			in.Op = opAddr
		}
	case 2: // add, sub
		in.addImm(w, wide)
	case 3: // with tags: addg, subg; min, max
		switch {
		case field(w, 22, 1) == 1:
			in.writes(in.Rd)
		default:
			in.writesOrSP(in.Rd)
		}
	case 4: // logical
		in.logicalImm(w, wide)
	case 5: // movn, movz, movk
		in.moveWide(w, wide)
	default: // bitfields, extr
		in.writes(in.Rd)
	}
}

func (in *inst) addImm(w uint32, wide bool) {
	imm := int64(field(w, 10, 12))
	if field(w, 22, 1) == 1 {
		imm <<= 12
	}
	if field(w, 30, 1) == 1 {
		imm = -imm
	}
	flags := field(w, 29, 1) == 1
	switch {
	case flags && in.Rd == 31: // cmp
		in.writes()
	case !wide && flags:
		in.writes(in.Rd)
	case !wide:
		in.writesOrSP(in.Rd)
	default:
		in.Op, in.Imm = opAdd, imm
	}
}

func (in *inst) logicalImm(w uint32, wide bool) {
	const and, orr, ands = 0, 1, 3
	opc := field(w, 29, 2)
	mask, ok := bitMask(field(w, 22, 1), field(w, 16, 6), field(w, 10, 6))
	switch {
	case wide && !ok:
		in.Op = opBad
	case opc == ands:
		in.writes(in.Rd)
	case wide && opc == orr && in.Rn == 31: // mov of a mask
		in.Op, in.Imm = opConst, int64(mask)
	case !wide || opc != and:
		in.writesOrSP(in.Rd)
	default:
		if rest := ^mask; rest&(rest+1) == 0 && rest < 64 {
			in.Op, in.Rn = opAnd, orZR(in.Rn)
			return
		}
		in.writesOrSP(in.Rd)
	}
}

// bitMask returns the mask of a logical instruction (Arm ARM, DecodeBitMasks).
func bitMask(n, immr, imms uint32) (uint64, bool) {
	size := bits.Len32(n<<6|^imms&0x3f) - 1
	if size < 1 {
		return 0, false
	}
	width := uint32(1) << size
	s, r := imms&(width-1), immr&(width-1)
	if s == width-1 {
		return 0, false
	}
	m := uint64(1)<<(s+1) - 1
	all := ^uint64(0) >> (64 - width)
	m = (m>>r | m<<(width-r)) & all
	for ; width < 64; width *= 2 {
		m |= m << width
	}
	return m, true
}

func (in *inst) moveWide(w uint32, wide bool) {
	shift := field(w, 21, 2) * 16
	imm := int64(uint64(field(w, 5, 16)) << shift)
	in.Rd = orZR(in.Rd)
	switch field(w, 29, 2) {
	case 0:
		in.Op, in.Imm = opConst, ^imm
	case 2:
		in.Op, in.Imm = opConst, imm
	case 3:
		in.Op, in.Imm, in.Rm = opKeep, int64(field(w, 5, 16)), uint8(shift)
	default:
		in.Op = opBad
		return
	}
	if !wide {
		if shift > 16 {
			in.Op = opBad
			return
		}
		in.Imm = int64(uint32(in.Imm))
	}
}

// branch decodes C4.1.93: branches, exceptions, and the system.
func (in *inst) branch(w uint32) {
	switch {
	case w>>26 == 0x05, w>>26 == 0x25: // b, bl
		in.Op, in.Imm = opBranch, sext(w, 0, 26)*4
		if w>>31 == 1 {
			in.Op = opCall
		}
	case w>>24 == 0x54, field(w, 25, 6) == 0x1a: // b.cond, bc.cond; cbz, cbnz
		in.Op, in.Imm = opCond, sext(w, 5, 19)*4
	case field(w, 25, 6) == 0x1b: // tbz, tbnz
		in.Op, in.Imm = opCond, sext(w, 5, 14)*4
	case w>>24 == 0xd4: // exceptions
		in.Op = opTrap
		if field(w, 21, 3) == 0 && w&31 == 1 { // svc: Linux gives its result in x0
			in.writes(x0)
		}
	case w>>24 == 0xd5:
		in.system(w)
	case w>>25 == 0x6b:
		in.branchReg(w)
	default:
		in.Op = opBad
	}
}

// branchReg decodes br, blr, ret, and those that check a signature first.
func (in *inst) branchReg(w uint32) {
	if field(w, 16, 5) != 31 || field(w, 12, 4) != 0 {
		in.Op = opBad
		return
	}
	switch field(w, 21, 4) {
	case 0, 8:
		in.Op = opJump
	case 1, 9:
		in.Op = opCall
	case 2:
		in.Op = opRet
		if field(w, 10, 2) != 0 { // retaa, retab have no operand
			in.Rn = x30
		}
	default: // eret, drps
		in.Op = opTrap
	}
	in.Rn = orZR(in.Rn)
}

// system decodes hints, barriers and system registers.
func (in *inst) system(w uint32) {
	switch {
	case w&0xfffff01f == 0xd503201f: // hints
		in.hint(field(w, 5, 7))
	case field(w, 21, 1) == 1: // mrs, sysl, tstart, ttest
		in.writes(in.Rd)
	default:
		in.writes()
	}
}

// hint decodes hints. The hints that sign return addresses do nothing on a CPU without signatures.
func (in *inst) hint(n uint32) {
	switch n {
	case 7, 24, 25, 26, 27, 28, 29, 30, 31: // xpaclri, paciaz, paciasp, pacibz, pacibsp, autiaz, ...
		in.Op, in.Rd = opSign, x30
	case 8, 10, 12, 14: // pacia1716, pacib1716, autia1716, autib1716
		in.Op, in.Rd = opSign, 17
	default:
		in.writes()
	}
}

// register decodes C4.1.95, data processing with registers.
func (in *inst) register(w uint32) {
	wide := w>>31 == 1
	switch {
	case w&0x7fe0ffe0 == 0x2a0003e0: // mov: orr Rd, zr, Rm
		if wide {
			in.Op, in.Rd, in.Rm = opMov, orZR(in.Rd), orZR(in.Rm)
			return
		}
		in.writes(in.Rd)
	case field(w, 24, 5) == 0x0b:
		in.addReg(w, wide)
	case field(w, 21, 8) == 0xd2: // ccmp, ccmn
		in.writes()
	case field(w, 21, 8) == 0xd0 && field(w, 10, 6) != 0: // rmif, setf8, setf16
		in.writes()
	case w&0xffff0000 == 0xdac10000: // pacia ... xpacd
		in.Op, in.Rd = opSign, orZR(in.Rd)
	case field(w, 21, 10) == 0x2d6 || field(w, 21, 10) == 0x0d6: // two sources
		if field(w, 10, 6) == 0 && field(w, 29, 1) == 1 { // subps
			in.writes(in.Rd)
			return
		}
		if wide && field(w, 10, 6) == 4 { // irg
			in.writesOrSP(in.Rd)
			return
		}
		in.writes(in.Rd)
	default:
		in.writes(in.Rd)
	}
}

// addReg decodes add and sub of a shifted or extended register.
func (in *inst) addReg(w uint32, wide bool) {
	extended, flags := field(w, 21, 1) == 1, field(w, 29, 1) == 1
	if !extended || flags {
		if in.Rd == 31 { // cmp, or nothing at all
			in.writes()
			return
		}
	}
	shift := int64(field(w, 10, 6))
	plain := field(w, 22, 2) == 0 // lsl
	if extended {
		shift, plain = int64(field(w, 10, 3)), field(w, 22, 2) == 0 && field(w, 13, 3) == 3 // uxtx
	} else {
		in.Rn = orZR(in.Rn)
	}
	if !wide {
		in.writesOrSP(in.Rd)
		return
	}
	if !plain {
		shift = -1
	}
	in.Op, in.Imm, in.Rm = opAddReg, shift, orZR(in.Rm)
	if field(w, 30, 1) == 1 {
		in.Op = opSubReg
	}
}

// vector decodes C4.1.96. Few of these instructions write a general register.
func (in *inst) vector(w uint32) {
	switch {
	case w&0xbfe0fc00 == 0x0e003c00, w&0xbfe0fc00 == 0x0e002c00: // umov, smov
		in.writes(in.Rd)
	case w&0x7f20fc00 == 0x1e200000: // between floating-point and integer
		if op := field(w, 16, 3); op == 0 || op == 1 || op == 4 || op == 5 || op == 6 {
			in.writes(in.Rd)
			return
		}
		in.writes()
	case w&0x7f200000 == 0x1e000000: // and fixed-point
		if op := field(w, 16, 3); op == 0 || op == 1 {
			in.writes(in.Rd)
			return
		}
		in.writes()
	default:
		in.writes()
	}
}

// sve decodes the scalable vectors. None of their loads and stores changes its base register.
func (in *inst) sve(w uint32) {
	switch {
	case w&0xffa0f000 == 0x04205000: // addvl, addpl and their streaming forms
		in.writesOrSP(in.Rd)
	case w&0xfffff000 == 0x04bf5000: // rdvl
		in.writes(in.Rd)
	case w>>24 == 0x04 && field(w, 21, 1) == 1 && field(w, 13, 3) == 7, // cntb, incb, uqdecb ...
		// lasta, clasta to a general register
		w>>24 == 0x05 && field(w, 19, 1) == 0 && field(w, 21, 1) == 1 && field(w, 13, 3) == 5,
		w>>24 == 0x25 && field(w, 21, 1) == 1 && field(w, 14, 2) == 2: // cntp, incp
		in.writes(in.Rd)
	default:
		in.writes()
	}
}
