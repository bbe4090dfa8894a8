package amd64

import (
	"bytes"
	"encoding/binary"

	"goprof/arch"
)

// Trampoline reads what SharedRuntime::generate_trampoline writes (MacroAssembler::jump,
// cpu/x86/macroAssembler_x86.cpp): a jump to an address near by, or one through R10.
func (code) Trampoline(code []byte, r *arch.Regs) (uint64, bool) {
	switch {
	case len(code) >= 5 && code[0] == 0xe9:
		rel := int64(int32(binary.LittleEndian.Uint32(code[1:])))
		return r[rip] + 5 + uint64(rel), true
	case len(code) >= 13 && code[0] == 0x49 && code[1] == 0xba && code[10] == 0x41 && code[11] == 0xff && code[12] == 0xe2:
		return binary.LittleEndian.Uint64(code[2:]), true // mov r10, imm64; jmp r10
	case len(code) >= 3 && code[0] == 0x41 && code[1] == 0xff && code[2] == 0xe2:
		return r[r10], true
	}
	return 0, false
}

// ThreadSlot reads the instruction that a return barrier begins with, mov rsp, [r15 + disp32]
// (cpu/x86/stubGenerator_x86_64.cpp, generate_cont_thaw: r15 is the JavaThread).
func (code) ThreadSlot(code []byte) (uint64, bool) {
	if len(code) < 7 || code[0] != 0x49 || code[1] != 0x8b || code[2] != 0xa7 {
		return 0, false
	}
	at := int32(binary.LittleEndian.Uint32(code[3:]))
	return uint64(at), at > 0
}

// LinkerStub recognises an entry of a procedure linkage table: jmp *[rip + disp32], or push imm32; jmp in an entry that
// is bound at its first call (System V ABI, 5.2). endbr64 and bnd may stand before these instructions. A library that
// was built without unwind rules has none for these entries, either.
func (code) LinkerStub(code []byte) bool {
	code = bytes.TrimPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) // endbr64
	if rest, ok := bytes.CutPrefix(code, []byte{0x68}); ok && len(rest) >= 4+1 {
		rest = bytes.TrimPrefix(rest[4:], []byte{0xf2})
		return len(rest) >= 5 && rest[0] == 0xe9
	}
	code = bytes.TrimPrefix(code, []byte{0xf2}) // bnd
	return len(code) >= 6 && code[0] == 0xff && code[1] == 0x25
}

// Detour returns false: on this CPU linkers move no instructions.
func (code) Detour([]byte) (int64, bool) { return 0, false }
