package disasm

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"
)

// Available says that this binary has a decoder.
const Available = true

// Text returns the instruction at the beginning of code in Intel's syntax. The instruction is at pc and n bytes long.
// to is the target of a call or jump, 0 if there is none or it is not known.
func Text(code []byte, pc uint64, n int) (text string, to uint64, ok bool) {
	in, err := x86asm.Decode(code[:n], 64)
	if err != nil || in.Len != n || in.Op == 0 {
		return "", 0, false
	}
	if rel, is := in.Args[0].(x86asm.Rel); is {
		to = pc + uint64(n) + uint64(int64(rel))
	}
	return x86asm.IntelSyntax(in, pc, nil), to, true
}

// PollsForSafepoint reports whether the instruction at an offset is a safepoint poll. At a return HotSpot compares the
// stack pointer with a word of the thread (macroAssembler_x86.cpp, MacroAssembler::safepoint_poll). Elsewhere it reads
// the polling page (nativeInst_x86.hpp, NativeInstruction::is_safepoint_poll). Code for other purposes may look the
// same, so recorded must be true: the compiler has debug information for this instruction.
func PollsForSafepoint(code []byte, at int, recorded bool) bool {
	c := code[at:]
	if len(c) >= 9 && c[0] == 0x49 && c[1] == 0x3b && c[2] == 0xa7 { // cmp rsp, [r15+disp32]
		return binary.BigEndian.Uint16(c[7:]) == 0x0f87 // ja
	}
	if len(c) > 1 && c[0] == 0x41 { // a register above 7
		c = c[1:]
	}
	return recorded && len(c) > 1 && c[0] == 0x85 && c[1]>>6 != 3 // test eax, [...]
}
