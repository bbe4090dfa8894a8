package arch

import "encoding/binary"

// trampolineAMD64 reads what SharedRuntime::generate_trampoline writes (MacroAssembler::jump,
// cpu/x86/macroAssembler_x86.cpp): a jump to an address near by, or one through R10.
func trampolineAMD64(code []byte, r *Regs) (uint64, bool) {
	switch {
	case len(code) >= 5 && code[0] == 0xe9:
		rel := int64(int32(binary.LittleEndian.Uint32(code[1:])))
		return r[amd64RIP] + 5 + uint64(rel), true
	case len(code) >= 13 && code[0] == 0x49 && code[1] == 0xba && code[10] == 0x41 && code[11] == 0xff && code[12] == 0xe2:
		return binary.LittleEndian.Uint64(code[2:]), true // mov r10, imm64; jmp r10
	case len(code) >= 3 && code[0] == 0x41 && code[1] == 0xff && code[2] == 0xe2:
		return r[amd64R10], true
	}
	return 0, false
}
