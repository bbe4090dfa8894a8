package amd64

import (
	"bytes"
	"slices"
)

// C2 makes pieces of code that are the same wherever they stand: see divisions for another one.
//
// C2 makes one piece of code for String.compareTo. Nothing in the piece tells of its method: all registers are those
// that HotSpot's macro wants. But the piece is the same wherever it stands (cpu/x86/c2_MacroAssembler_x86.cpp, up to 15
// macroAssembler_x86.cpp: string_compare, of all releases): it begins with
//
//	mov result, cnt1; sub cnt1, cnt2; push cnt1; cmovle cnt2, result
//
// and ends with the only instruction that pops cnt1. The registers are fixed (x86_64.ad: string_compareL and others).
// For strings of two coders, rcx and rdx change places.

// intrinsicMarks are those beginnings, from the push on; before it stand as many bytes as intrinsicLead.
var intrinsicMarks = [...]struct {
	lead, rest []byte
	pop        byte
}{
	{[]byte{0x8b, 0xc1, 0x2b, 0xca}, []byte{0x51, 0x0f, 0x4e, 0xd0}, 0x59},
	{[]byte{0x8b, 0xc2, 0x2b, 0xd1}, []byte{0x52, 0x0f, 0x4e, 0xc8}, 0x5a},
}

// maxIntrinsic bounds the piece: with AVX-512 it has some 700 bytes.
const maxIntrinsic = 2048

// cmovle is what stands behind the push.
var cmovle = []byte{0x0f, 0x4e}

// found is a piece.
type found struct {
	name       string
	begin, end uint32
}

// Intrinsics is described at arch.Code.
func (code) Intrinsics(code []byte, each func(name string, begin, end uint32) bool) {
	var pieces []found
	note := func(name string, begin, end uint32) { pieces = append(pieces, found{name, begin, end}) }
	compares(code, note)
	divisions(code, note)
	slices.SortFunc(pieces, func(a, b found) int { return int(a.begin) - int(b.begin) })
	last := uint32(0)
	for _, p := range pieces {
		if p.begin < last {
			continue
		}
		if last = p.end; !each(p.name, p.begin, p.end) {
			return
		}
	}
}

// compares finds string_compare.
func compares(code []byte, note func(name string, begin, end uint32)) {
	for from := 0; ; {
		n := bytes.Index(code[from:], cmovle)
		if n < 0 {
			return
		}
		begin := from + n - len(intrinsicMarks[0].lead) - 1
		from += n + len(cmovle)
		if begin < 0 {
			continue
		}
		if name, end := intrinsic(code, uint32(begin)); name != "" {
			note(name, uint32(begin), end)
		}
	}
}

// intrinsic tells whether such code begins at an offset, and where it ends.
func intrinsic(code []byte, at uint32) (name string, end uint32) {
	if uint64(at) >= uint64(len(code)) || code[at] != 0x8b {
		return "", 0
	}
	for _, m := range intrinsicMarks {
		push := int(at) + len(m.lead)
		if !bytes.HasPrefix(code[at:], m.lead) || !bytes.HasPrefix(code[push:], m.rest) {
			continue
		}
		var in inst
		for n := push; n < len(code) && n-push < maxIntrinsic && decode(code[n:], &in); n += in.Len {
			if code[n] == m.pop {
				return "string_compare", uint32(n + 1)
			}
			if n > push && code[n] == m.rest[0] {
				break // the next piece: code that is nothing but beginnings is not read again for each
			}
		}
	}
	return "", 0
}
