package amd64

import (
	"bytes"
	"encoding/binary"
)

// LongJumps is described at arch.Code: jmp rel32 and jcc rel32.
func (code) LongJumps(code []byte, each func(at, target uint32)) {
	eachByte(code, 0xe9, func(at int) { longJump(code, at, at+1, each) })
	eachByte(code, 0x0f, func(at int) {
		if at+1 < len(code) && code[at+1]&0xf0 == 0x80 {
			longJump(code, at, at+2, each)
		}
	})
}

// eachByte calls each with the offset of every b in code.
func eachByte(code []byte, b byte, each func(at int)) {
	for at := 0; ; at++ {
		n := bytes.IndexByte(code[at:], b)
		if n < 0 {
			return
		}
		at += n
		each(at)
	}
}

// longJump reads the distance of a jump at an offset. It calls each if the distance and the jump's target both lie in
// the code.
func longJump(code []byte, at, distance int, each func(at, target uint32)) {
	if end := distance + 4; end <= len(code) {
		to := int64(end) + int64(int32(binary.LittleEndian.Uint32(code[distance:])))
		if to >= 0 && to < int64(len(code)) {
			each(uint32(at), uint32(to))
		}
	}
}
