package amd64

import (
	"bytes"
	"encoding/binary"
)

// code implements arch.Code for x86-64.
type code struct{}

// maxAfterLeave bounds the bytes of code between the place where HotSpot's interpreter removes a frame and its jump to
// the caller (interp_masm_*.cpp, remove_activation), or to a handler in the caller. Before the jump to a handler it
// asks the VM for the handler (templateInterpreterGenerator_*.cpp, generate_throw_exception).
const maxAfterLeave = 112

// AfterLeave reports whether LEAVE (0xc9) may be among the bytes before off.
func (code) AfterLeave(b []byte, off uint64) bool {
	off = min(off, uint64(len(b)))
	return bytes.IndexByte(b[off-min(off, maxAfterLeave):off], 0xc9) >= 0
}

// Enters returns the length of PUSH rbp; MOV rbp, rsp, in either encoding.
func (code) Enters(b []byte) int {
	if bytes.HasPrefix(b, []byte{0x55, 0x48, 0x8b, 0xec}) || bytes.HasPrefix(b, []byte{0x55, 0x48, 0x89, 0xe5}) {
		return 4
	}
	return 0
}

// EndsInCall knows CALL rel32 (e8), and CALL r/m (ff /2) with any operand.
func (code) EndsInCall(b []byte) bool {
	n := len(b)
	if n >= 5 && b[n-5] == 0xe8 {
		return true
	}
	var in inst
	for i := max(0, n-8); i < n-1; i++ {
		if decode(b[i:], &in) && in.Len == n-i && in.Map == 0 && in.Op == 0xff && in.OpX == 2 {
			return true
		}
	}
	return false
}

// CallTarget returns the target of CALL rel32.
func (code) CallTarget(b []byte, ret uint64) (uint64, bool) {
	n := len(b)
	if n < 5 || b[n-5] != 0xe8 {
		return 0, false
	}
	return ret + uint64(int64(int32(binary.LittleEndian.Uint32(b[n-4:])))), true
}

// SenderSP finds none: on this CPU all JDKs have the same register, Java.SenderSP.
func (code) SenderSP([]byte) (int, bool) { return 0, false }

// Pops returns 0: on this CPU no word is pushed for a call alone.
func (code) Pops([]byte) uint64 { return 0 }

// Signed returns 0: on this CPU no address has a signature.
func (code) Signed(uint64) uint64 { return 0 }
