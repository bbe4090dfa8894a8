package arm64

import (
	"encoding/binary"
	"math/bits"
)

// code implements arch.Code for aarch64.
type code struct{}

// SenderSP reads the call stub's last two instructions: mov x19, sp; blr (cpu/aarch64/stubGenerator_aarch64.cpp,
// generate_call_stub). JDK 8 to 17 have x13 there.
func (c code) SenderSP(code []byte) (int, bool) {
	var in inst
	ok := decode(code, &in) && in.Op == opAdd && in.Rn == regSP && in.Imm == 0 && in.Rd < x30
	return int(in.Rd), ok && c.EndsInCall(code)
}

// maxAfterLeave bounds the bytes of code between the place where HotSpot's interpreter drops a frame and its jump away,
// as in arch/amd64.
const maxAfterLeave = 192

// AfterLeave reports whether MOV sp, x29 is among the instructions before off.
func (code) AfterLeave(code []byte, off uint64) bool {
	off = min(off, uint64(len(code))) &^ 3
	var in inst
	for at := off; at >= 4 && off-at < maxAfterLeave; at -= 4 {
		if binary.LittleEndian.Uint32(code[at-4:]) == 0x910003bf {
			return true
		}
		if !decode(code[at-4:], &in) || in.Op == opBranch || in.Op == opJump || in.Op == opRet || in.Op == opTrap {
			return false // another path leads to code behind a return or a jump
		}
	}
	return false
}

// Enters returns the length of STP x29, x30, [sp, #-16]!; MOV x29, sp, behind one or two instructions that sign x30 or
// remove its signature.
func (code) Enters(code []byte) int {
	n := 0
	for len(code)-n >= 12 && n < 8 && signs(binary.LittleEndian.Uint32(code[n:])) {
		n += 4
	}
	if len(code)-n >= 8 && binary.LittleEndian.Uint32(code[n:]) == 0xa9bf7bfd &&
		binary.LittleEndian.Uint32(code[n+4:]) == 0x910003fd {
		return n + 8
	}
	return 0
}

// signs knows XPACLRI, PACIASP, and HotSpot's own PACIAZ or, up to 19, PACIA x30, x29
// (cpu/aarch64/macroAssembler_aarch64.cpp, protect_return_address).
func signs(w uint32) bool {
	return w == 0xd50320ff || w == 0xd503233f || w == 0xd503231f || w == 0xdac103be
}

// EndsInCall knows BL and BLR, and the forms of BLR that check a signature.
func (code) EndsInCall(code []byte) bool {
	if len(code) < 4 {
		return false
	}
	op := binary.LittleEndian.Uint32(code[len(code)-4:])
	return op>>26 == 0x25 || op&0xfffffc1f == 0xd63f0000 || op&0xfefff800 == 0xd63f0800
}

// CallTarget returns the target of BL.
func (code) CallTarget(code []byte, ret uint64) (uint64, bool) {
	if len(code) < 4 {
		return 0, false
	}
	op := binary.LittleEndian.Uint32(code[len(code)-4:])
	if op>>26 != 0x25 {
		return 0, false
	}
	return ret - 4 + uint64(int64(int32(op<<6)>>6)*4), true
}

// Pops looks for ADD sp, sp, #16. Around calls of C, compiled code pushes two words, one of them the return address
// (cpu/aarch64/aarch64.ad, aarch64_enc_java_to_runtime).
func (code) Pops(code []byte) uint64 {
	if len(code) >= 4 && binary.LittleEndian.Uint32(code) == 0x910043ff {
		return 16
	}
	return 0
}

// Signed returns the bits in which an address may have a signature. They lie between the address's own bits and bit 55
// (Documentation/arch/arm64/pointer-authentication.rst). The kernel chooses how many bits an address has, 36 to 52
// (Documentation/arch/arm64/memory.rst). With more than 48 bits, a program's stack still lies at the end of the memory
// that 48 bits reach.
func (code) Signed(highest uint64) uint64 { return 1<<55 - 1<<min(max(bits.Len64(highest-1), 36), 55) }
