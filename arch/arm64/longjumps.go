package arm64

import (
	"encoding/binary"

	"goprof/arch"
)

// LongJumps is described at arch.Code. On this CPU all jumps have the same length, and an instruction begins at each
// multiple of four bytes.
func (c code) LongJumps(code []byte, each func(at, target uint32)) {
	var in arch.Inst
	for at := 0; at+4 <= len(code); at += 4 {
		switch w := binary.LittleEndian.Uint32(code[at:]); {
		case w>>26 == 0b000101, w>>24 == 0x54, w>>25&0x3f == 0b011010, w>>25&0x3f == 0b011011: // b, b.cond, cbz, tbz
			if c.Read(code, uint32(at), &in) && in.HasTarget {
				each(uint32(at), in.Target)
			}
		}
	}
}
