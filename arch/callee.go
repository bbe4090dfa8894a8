package arch

import "encoding/binary"

// Callee returns where a call leads that stands before a return address, if its instruction says that. code is what
// stands there, MaxCall bytes of it or more.
func (c *CPU) Callee(code []byte, returns uint64) (to uint64, ok bool) {
	n := len(code)
	if c.LR >= 0 {
		if n < 4 {
			return 0, false
		}
		w := binary.LittleEndian.Uint32(code[n-4:])
		return returns - 4 + uint64(sext(w, 0, 26)*4), w>>26 == 0x25 // bl
	}
	if n < 5 || code[n-5] != 0xe8 {
		return 0, false
	}
	return returns + uint64(int64(int32(binary.LittleEndian.Uint32(code[n-4:])))), true
}
