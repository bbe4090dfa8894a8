package arm64

import (
	"encoding/binary"

	"goprof/arch"
)

// Read is described at arch.Code.
func (code) Read(code []byte, at uint32, out *arch.Inst) bool {
	var in inst
	if uint64(at)+4 > uint64(len(code)) || uint64(len(code)) >= 1<<31 || !decode(code[at:], &in) {
		return false
	}
	w := binary.LittleEndian.Uint32(code[at:])
	*out = arch.Inst{Len: 4, Kind: in.kind(w)}
	if (in.Op == opLoad || in.Op == opStore) && in.Index != indexNoAddr {
		out.Base, out.Disp = baseOf(in.Rn), int32(in.Imm)
	}
	if in.Op == opLoad && in.Index == indexOffset && isSingle(w) && (in.Rd != zr || field(w, 26, 1) == 1) {
		if out.Loads = true; out.Base == arch.BaseOther {
			out.Loads, out.Indexed, out.Narrow = addressOf(code, at, in.Rn)
		}
	}
	if isMark(code, at) {
		out.Kind, out.Disp = arch.KindNop, 1
	}
	out.Stores = in.Op == opStore
	out.Byte = (in.Op == opLoad || in.Op == opStore) && !in.Pair && field(w, 30, 2) == 0 && field(w, 26, 1) == 0
	if w&0xffc0fc00 == 0xd340fc00 { // lsr
		out.Shift = uint8(field(w, 16, 6))
	}
	out.Widens = w&0xfffffc00 == 0xd37df000 // lsl
	out.Swaps = swaps(w)
	if in.Op == opConst && in.Rd == 1 {
		out.Arg = int32(in.Imm)
	}
	switch in.Op {
	case opCond:
		out.Flow = arch.FlowBranch
	case opBranch:
		out.Flow = arch.FlowJump
	case opCall:
		out.Flow = arch.FlowCall
	case opRet:
		out.Flow = arch.FlowReturn
	case opJump:
		out.Flow = arch.FlowJump
	case opTrap:
		out.Flow = arch.FlowEnds
	}
	if in.Op == opCond || in.Op == opBranch {
		target := int64(at) + in.Imm
		out.HasTarget = target >= 0 && target < int64(len(code))
		out.Target = uint32(target)
	}
	return true
}

// isMark reports whether an instruction is part of a mark behind a call: a nop, and movk of the zero register, twice.
func isMark(code []byte, at uint32) bool {
	w := binary.LittleEndian.Uint32(code[at:])
	if w == nop && uint64(at)+8 <= uint64(len(code)) {
		w = binary.LittleEndian.Uint32(code[at+4:])
	}
	return w&0xff80001f == 0xf280001f
}

const nop = 0xd503201f

// isSingle reports whether a load or a store is of the class that moves one register, or a part of it (Arm ARM,
// C4.1.94). Loads of two vectors, of structures and of literals are of other classes.
func isSingle(w uint32) bool { return field(w, 27, 3) == 7 }

// baseOf returns what a base register holds. HotSpot keeps the thread in x28 (aarch64.ad, rthread).
func baseOf(r uint8) arch.Base {
	switch r {
	case regSP:
		return arch.BaseStack
	case x28:
		return arch.BaseThread
	}
	return arch.BaseOther
}

// swaps reports whether an instruction is cas, or one of its kinds that order memory.
func swaps(w uint32) bool { return w&0x3fa07c00 == 0x08a07c00 }

func (in *inst) kind(w uint32) arch.Kind {
	switch {
	case compares(w):
		return arch.KindCompare
	case swaps(w): // other atomic instructions: whether they delay interrupts was not measured
		return arch.KindAtomic
	case w&0xffc00000 == 0xf9800000: // prfm
		return arch.KindPrefetch
	case in.Op == opAdd && in.Rd == regSP && in.Rn == regSP && in.Imm > 0, // add to sp
		in.Op == opLoad && in.Pair && in.Rd == x29 && in.Rn == regSP: // ldp x29, x30
		return arch.KindLeave
	case isLong(w):
		return arch.KindLong
	case in.Op == opConst, in.Op == opKeep, in.Op == opNear, in.Op == opAddr,
		in.Op == opAdd && in.Rn == regSP && in.Rd != regSP:
		return arch.KindConst
	case w == nop:
		return arch.KindNop
	case w&0xffe0ffe0 == 0x2a0003e0: // mov of 32 bits
		return arch.KindCopy
	case in.Op == opMov, (in.Op == opLoad || in.Op == opStore) && in.Rn == regSP && in.Index == indexOffset:
		return arch.KindCopy
	}
	return arch.KindOther
}

// compares reports whether an instruction sets the flags and writes nothing else: cmp, cmn, tst, fcmp.
func compares(w uint32) bool {
	toZero := w&31 == 31
	switch w >> 24 & 31 {
	case 0x0b, 0x11: // add, sub, with a register or a constant
		return toZero && w>>29&1 == 1
	case 0x0a, 0x12: // logical, with a register or a constant
		return toZero && w>>29&3 == 3 && (w>>24&31 == 0x0a || w>>23&1 == 0)
	}
	return w&0xff20fc07 == 0x1e202000
}

// maxAddress bounds the instructions from the one that makes an address to the load that uses it.
const maxAddress = 24

// addressOf finds out from the code before a load whether the load's register is the sum of an array and an index. C2
// adds the index to a register before it loads an element (aarch64.ad, AddP), so the load itself looks like that of a
// field. If no instruction near the load has written the register, addressOf regards it as the address of an object.
// known is false if the register holds something else. narrow says that the index may be a compressed reference.
func addressOf(code []byte, at uint32, base uint8) (known, indexed, narrow bool) {
	for n := 0; n < maxAddress && at >= 4; n++ {
		at -= 4
		w := binary.LittleEndian.Uint32(code[at:])
		if leaves(w) {
			break
		}
		o, ok := CPU.Operands(code, at)
		switch {
		case !ok:
			return false, false, false
		case o.Writes&(1<<base) == 0:
		case w&0xffe0ffe0 == 0x8b000fe0: // a compressed reference, and nothing is added: see widens
			return true, false, false
		case w>>24 == 0x8b: // add of a register
			return true, true, widens(w)
		case w>>24 == 0x91: // add of a constant
			return false, false, false
		case w&0xffe0ffe0 == 0xaa0003e0: // mov
			base = uint8(field(w, 16, 5))
		default:
			return true, false, false
		}
	}
	return true, false, false
}

// widens reports whether a sum may be that of a compressed reference: the reference is shifted, and the beginning of
// the heap in x27 is added (macroAssembler_aarch64.cpp, decode_heap_oop_not_null; rheapbase). If the heap begins at
// zero, the zero register is added, and C2 may keep anything in x27 (aarch64.ad, reg_mask_init).
func widens(w uint32) bool { return w&0xffe0ffe0 == 0x8b000f60 }

// leaves reports whether the code behind an instruction is reached by another path, or after a call.
func leaves(w uint32) bool {
	return w>>26 == 0x05 || w>>26 == 0x25 || w>>25 == 0x6b || w>>24 == 0xd4 // b, bl, br and its like, brk
}
