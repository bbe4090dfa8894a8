package arch

import "encoding/binary"

// threadSlotARM64 reads the instructions that a return barrier begins with, ldr x8, [x28, #imm]; mov sp, x8
// (cpu/aarch64/stubGenerator_aarch64.cpp, generate_cont_thaw: x28 is the JavaThread).
func threadSlotARM64(code []byte) (uint64, bool) {
	var load, move a64Inst
	if len(code) < 8 || !decodeA64(code, &load) || !decodeA64(code[4:], &move) {
		return 0, false
	}
	isLoad := load.Op == a64Load && !load.Narrow && !load.Pair && load.Index == a64Offset && load.Rn == arm64X28
	isMove := move.Op == a64Add && move.Rd == arm64SP && move.Rn == load.Rd && move.Imm == 0
	return uint64(load.Imm), isLoad && isMove && load.Imm > 0
}

// maxTrampolineInsts is how many instructions make up an address and jump there.
const maxTrampolineInsts = 4

// trampolineARM64 follows what SharedRuntime::generate_trampoline writes (cpu/aarch64/sharedRuntime_aarch64.cpp):
// a far branch by way of a register, made up of up to four parts.
func trampolineARM64(code []byte, r *Regs) (uint64, bool) {
	regs := *r
	var in a64Inst
	for i := 0; i < maxTrampolineInsts && decodeA64(code[min(4*i, len(code)):], &in); i++ {
		pc := r[arm64PC] + 4*uint64(i)
		switch in.Op {
		case a64Branch:
			return pc + uint64(in.Imm), true
		case a64Jump:
			return regs[in.Rn&31], in.Rn != zr
		case a64Const:
			regs[in.Rd&31] = uint64(in.Imm)
		case a64Keep:
			v := &regs[in.Rd&31]
			*v = *v&^(0xffff<<in.Rm) | uint64(in.Imm)<<in.Rm
		case a64Add:
			regs[in.Rd&31] = regs[in.Rn&31] + uint64(in.Imm)
		case a64Addr:
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

// pageAddress is what adr and adrp compute.
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

// linkerStubARM64 looks for an entry of a procedure linkage table, or what is left of it: adrp x16; ldr x17, [x16];
// add x16, x16; br x17 (AAELF64, "Procedure linkage table"; x16 and x17 are the linker's).
func linkerStubARM64(code []byte) bool {
	const x16, x17 = 16, 17
	for ; len(code) >= 4; code = code[4:] {
		var in a64Inst
		ok := decodeA64(code, &in)
		switch {
		case !ok:
			return false
		case in.Op == a64Jump:
			return in.Rn == x17
		case in.Op == a64Other && in.Writes == 0, in.Op == a64Sign && in.Rd == x17: // hints
		case in.Op == a64Addr && in.Rd == x16, in.Op == a64Add && in.Rd == x16 && in.Rn == x16:
		case in.Op == a64Load && in.Rd == x17 && in.Rn == x16 && in.Index == a64Offset && !in.Pair:
		default:
			return false
		}
	}
	return false
}

// detourARM64 looks for what linkers make of a load or store that Cortex-A53's erratum 843419, or 835769, may break: it is moved to the end of
// the section, with a branch back behind it, and a branch to there stands in its place (GNU ld and gold, --fix-cortex-a53-843419; their
// symbols are e843419@...). There are no unwind rules there.
func detourARM64(code []byte) (by int64, ok bool) {
	const frame = 1<<arm64X29 | 1<<arm64X30 | 1<<arm64SP
	var in a64Inst
	if !decodeA64(code, &in) {
		return 0, false
	}
	if in.Op == a64Branch {
		return in.Imm, true
	}
	written := in.Writes
	switch in.Op {
	case a64Other:
	case a64Store: // not to the stack, and nothing that rules speak of
		if in.Rn == arm64SP || in.Rd == arm64X29 || in.Rd == arm64X30 {
			return 0, false
		}
	case a64Load:
		if in.Rd != zr {
			written = 1 << in.Rd
		}
	default:
		return 0, false
	}
	if written&frame != 0 || in.Pair || in.Index != a64Offset || !decodeA64(code[4:], &in) {
		return 0, false
	}
	return 4 + in.Imm, in.Op == a64Branch
}
