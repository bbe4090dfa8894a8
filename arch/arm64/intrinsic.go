package arm64

import (
	"bytes"
	"encoding/binary"
)

// C2 makes one piece of code for String.compareTo. It is the same wherever it stands
// (cpu/aarch64/c2_MacroAssembler_aarch64.cpp, up to 15 macroAssembler_aarch64.cpp: string_compare): it begins with
//
//	[asr cnt1, cnt1, 1; asr cnt2, cnt2, 1]; subs result, cnt1, cnt2; csel cnt2, cnt1, cnt2, le
//
// The only cbz of cnt2 stands where the code for short strings begins. It leads to the end of the piece, for a string
// without characters. The registers are fixed (aarch64.ad: string_compareL and others). Other long intrinsic methods
// need no entry here: C2 calls stubs for most of their work, and stubs have names.

// compareMark is the beginning of that piece, from the subs on.
var compareMark = []byte{0x40, 0x00, 0x04, 0x6b, 0x44, 0xd0, 0x84, 0x1a}

const (
	halvesFirst, halvesSecond = 0x13017c42, 0x13017c84 // asr w2, w2, 1; asr w4, w4, 1
	// maxIntrinsic bounds the piece: it has some 300 bytes, and more for strings of two coders.
	maxIntrinsic = 2048
)

// Intrinsics is described at arch.Code.
func (code) Intrinsics(code []byte, each func(name string, begin, end uint32) bool) {
	for from, last := 0, 0; ; {
		n := bytes.Index(code[from:], compareMark)
		if n < 0 {
			return
		}
		at := from + n
		from = at + 4
		if at%4 != 0 {
			continue
		}
		end := endOfCompare(code, at)
		if end == 0 {
			continue
		}
		begin := at
		for begin >= last+4 && begin > at-8 && halves(binary.LittleEndian.Uint32(code[begin-4:])) {
			begin -= 4
		}
		if from, last = end, end; !each("string_compare", uint32(begin), uint32(end)) {
			return
		}
	}
}

func halves(w uint32) bool { return w == halvesFirst || w == halvesSecond }

// endOfCompare returns where a piece ends that begins at an offset, 0 if there is no such piece.
func endOfCompare(code []byte, begin int) int {
	for at := begin + len(compareMark); at+4 <= len(code) && at-begin < maxIntrinsic; at += 4 {
		if bytes.HasPrefix(code[at:], compareMark) {
			break // here the next piece begins; without this end, the time would be quadratic in hostile code
		}
		w := binary.LittleEndian.Uint32(code[at:])
		if w&0x7f00001f != 0x34000004 { // cbz w4, or x4
			continue
		}
		if end := at + int(sext(w, 5, 19))*4; end > at && end <= len(code) && end-begin < maxIntrinsic {
			return end
		}
		break
	}
	return 0
}
