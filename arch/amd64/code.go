package amd64

import (
	"bytes"
	"encoding/binary"
)

// code is what this CPU's code tells: arch.Code says of what.
type code struct{}

// maxAfterLeave is how many bytes of code HotSpot's interpreter has between dropping a
// frame and the jump to its caller (interp_masm_*.cpp, remove_activation), or to a handler in
// the caller, which it asks the VM for first (templateInterpreterGenerator_*.cpp,
// generate_throw_exception).
const maxAfterLeave = 112

// AfterLeave looks for LEAVE (0xc9).
func (code) AfterLeave(b []byte, off uint64) bool {
	off = min(off, uint64(len(b)))
	return bytes.IndexByte(b[off-min(off, maxAfterLeave):off], 0xc9) >= 0
}

// Enters looks for PUSH rbp; MOV rbp, rsp in either encoding.
func (code) Enters(b []byte) int {
	if bytes.HasPrefix(b, []byte{0x55, 0x48, 0x8b, 0xec}) || bytes.HasPrefix(b, []byte{0x55, 0x48, 0x89, 0xe5}) {
		return 4
	}
	return 0
}

// EndsInCall looks for CALL rel32 (e8), or CALL r/m (ff /2) with any operand.
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

// CallTarget knows CALL rel32.
func (code) CallTarget(b []byte, ret uint64) (uint64, bool) {
	n := len(b)
	if n < 5 || b[n-5] != 0xe8 {
		return 0, false
	}
	return ret + uint64(int64(int32(binary.LittleEndian.Uint32(b[n-4:])))), true
}

// SenderSP: all JDKs have the same.
func (code) SenderSP([]byte) (int, bool) { return 0, false }

// Pops: nothing is pushed for a call alone.
func (code) Pops([]byte) uint64 { return 0 }

// Signed: nothing is signed.
func (code) Signed(uint64) uint64 { return 0 }
