package arch

import "encoding/binary"

// threadSlotAMD64 reads the instruction that a return barrier begins with, mov rsp, [r15 + disp32]
// (cpu/x86/stubGenerator_x86_64.cpp, generate_cont_thaw: r15 is the JavaThread).
func threadSlotAMD64(code []byte) (uint64, bool) {
	if len(code) < 7 || code[0] != 0x49 || code[1] != 0x8b || code[2] != 0xa7 {
		return 0, false
	}
	at := int32(binary.LittleEndian.Uint32(code[3:]))
	return uint64(at), at > 0
}
