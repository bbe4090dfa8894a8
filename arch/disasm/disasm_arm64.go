package disasm

import (
	"encoding/binary"

	"golang.org/x/arch/arm64/arm64asm"
)

// Available says that this binary has a decoder.
const Available = true

// Text returns the instruction at the beginning of code in GNU's syntax. The instruction is at pc and n bytes long. to
// is the target of a call or jump, 0 if there is none or it is not known.
func Text(code []byte, pc uint64, n int) (text string, to uint64, ok bool) {
	in, err := arm64asm.Decode(code[:n])
	if err != nil || n != 4 || in.Op == 0 {
		return "", 0, false
	}
	for _, arg := range in.Args {
		rel, is := arg.(arm64asm.PCRel)
		if is && in.Op != arm64asm.ADR && in.Op != arm64asm.ADRP && in.Op != arm64asm.LDR {
			to = pc + uint64(int64(rel))
		}
	}
	return arm64asm.GNUSyntax(in), to, true
}

// PollsForSafepoint reports whether the instruction at an offset is a safepoint poll. At a return HotSpot compares the
// stack pointer with a word of the thread (macroAssembler_aarch64.cpp, MacroAssembler::safepoint_poll). Elsewhere it
// loads from the polling page into wzr (nativeInst_aarch64.hpp, is_ldrw_to_zr). Code for other purposes may look the
// same, so recorded must be true: the compiler has debug information for this instruction.
func PollsForSafepoint(code []byte, at int, recorded bool) bool {
	if len(code)-at < 8 {
		return false
	}
	in, next := binary.LittleEndian.Uint32(code[at:]), binary.LittleEndian.Uint32(code[at+4:])
	if in&^(0x1f<<16) == 0xeb2063ff { // cmp sp, xN
		return next&0xff00001f == 0x54000008 // b.hi
	}
	return recorded && in&0xffc0001f == 0xb940001f // ldr wzr, [...]
}
