package arm64

import (
	"encoding/binary"

	"goprof/arch"
)

// ThreadSlot reads the instructions that a return barrier begins with, ldr x8, [x28, #imm]; mov sp, x8
// (cpu/aarch64/stubGenerator_aarch64.cpp, generate_cont_thaw: x28 is the JavaThread).
func (code) ThreadSlot(code []byte) (uint64, bool) {
	var load, move inst
	if len(code) < 8 || !decode(code, &load) || !decode(code[4:], &move) {
		return 0, false
	}
	isLoad := load.Op == opLoad && !load.Narrow && !load.Pair && load.Index == indexOffset && load.Rn == x28
	isMove := move.Op == opAdd && move.Rd == regSP && move.Rn == load.Rd && move.Imm == 0
	return uint64(load.Imm), isLoad && isMove && load.Imm > 0
}

// maxTrampolineInsts is how many instructions may make an address and jump there.
const maxTrampolineInsts = 4

// Trampoline follows what SharedRuntime::generate_trampoline writes (cpu/aarch64/sharedRuntime_aarch64.cpp):
// a far branch by way of a register, made up of up to four parts.
func (code) Trampoline(code []byte, r *arch.Regs) (uint64, bool) {
	regs := *r
	var in inst
	for i := 0; i < maxTrampolineInsts && decode(code[min(4*i, len(code)):], &in); i++ {
		pc := r[regPC] + 4*uint64(i)
		switch in.Op {
		case opBranch:
			return pc + uint64(in.Imm), true
		case opJump:
			return regs[in.Rn&31], in.Rn != zr
		case opConst:
			regs[in.Rd&31] = uint64(in.Imm)
		case opKeep:
			v := &regs[in.Rd&31]
			*v = *v&^(0xffff<<in.Rm) | uint64(in.Imm)<<in.Rm
		case opAdd:
			regs[in.Rd&31] = regs[in.Rn&31] + uint64(in.Imm)
		case opAddr:
			to, ok := pageAddress(binary.LittleEndian.Uint32(code[4*i:]), pc)
			if !ok {
				return 0, false
			}
			regs[in.Rd&31] = to
		default:
			return 0, false
		}
	}
	return 0, false
}

// pageAddress returns what adr and adrp compute.
func pageAddress(w uint32, pc uint64) (uint64, bool) {
	if field(w, 24, 5) != 0x10 {
		return 0, false
	}
	off := sext(w, 5, 19)<<2 | int64(field(w, 29, 2))
	if w>>31 == 0 {
		return pc + uint64(off), true
	}
	return pc&^0xfff + uint64(off<<12), true
}

// LinkerStub looks for an entry of a procedure linkage table, or the rest of it behind the pc: adrp x16; ldr x17,
// [x16]; add x16, x16; br x17 (AAELF64, "Procedure linkage table"; x16 and x17 are the linker's).
func (code) LinkerStub(code []byte) bool {
	const x16, x17 = 16, 17
	for ; len(code) >= 4; code = code[4:] {
		var in inst
		ok := decode(code, &in)
		switch {
		case !ok:
			return false
		case in.Op == opJump:
			return in.Rn == x17
		case in.Op == opOther && in.Writes == 0, in.Op == opSign && in.Rd == x17: // hints
		case in.Op == opAddr && in.Rd == x16, in.Op == opAdd && in.Rd == x16 && in.Rn == x16:
		case in.Op == opLoad && in.Rd == x17 && in.Rn == x16 && in.Index == indexOffset && !in.Pair:
		default:
			return false
		}
	}
	return false
}

// Detour recognises an instruction that a linker has moved because of an erratum of Cortex-A53 (843419 or 835769), and
// the branch behind it. It returns the distance from the start of code to where the branch leads. code may also begin
// with the branch.
//
// The linker moves the instruction to the end of the section. In the old place it puts a branch to the new place (GNU
// ld and gold, --fix-cortex-a53-843419; their symbols are e843419@...). The new place has no unwind rules.
func (code) Detour(code []byte) (by int64, ok bool) {
	const frame = 1<<x29 | 1<<x30 | 1<<regSP
	var in inst
	if !decode(code, &in) {
		return 0, false
	}
	if in.Op == opBranch {
		return in.Imm, true
	}
	written := in.Writes
	switch in.Op {
	case opOther:
	case opStore: // a moved store never writes to the stack, and never stores x29 or x30
		if in.Rn == regSP || in.Rd == x29 || in.Rd == x30 {
			return 0, false
		}
	case opLoad:
		if in.Rd != zr {
			written = 1 << in.Rd
		}
	default:
		return 0, false
	}
	if written&frame != 0 || in.Pair || in.Index != indexOffset || !decode(code[4:], &in) {
		return 0, false
	}
	return 4 + in.Imm, in.Op == opBranch
}
