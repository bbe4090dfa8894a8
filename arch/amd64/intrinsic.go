package amd64

import (
	"bytes"
	"sort"
)

// C2 replaces a call of String.compareTo by a piece of code. Nothing in the piece names the method. But goprof can find
// the piece, since it always begins and ends in the same way (cpu/x86/c2_MacroAssembler_x86.cpp, up to 15
// macroAssembler_x86.cpp: string_compare, of all releases). It begins with
//
//	mov result, cnt1; sub cnt1, cnt2; push cnt1; cmovle cnt2, result
//
// and ends with the only instruction that pops cnt1. Each variable always has the same register (x86_64.ad:
// string_compareL and others). If the two strings have different coders, rcx and rdx change places.

// intrinsicMarks are the two possible beginnings. lead are the bytes before the push, and rest begins with the push.
// pop is the instruction that ends the piece.
var intrinsicMarks = [...]struct {
	lead, rest []byte
	pop        byte
}{
	{[]byte{0x8b, 0xc1, 0x2b, 0xca}, []byte{0x51, 0x0f, 0x4e, 0xd0}, 0x59},
	{[]byte{0x8b, 0xc2, 0x2b, 0xd1}, []byte{0x52, 0x0f, 0x4e, 0xc8}, 0x5a},
}

// maxIntrinsic bounds the piece: with AVX-512 it has some 700 bytes.
const maxIntrinsic = 2048

// cmovle begins the instruction behind the push.
var cmovle = []byte{0x0f, 0x4e}

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
	sort.Slice(pieces, func(i, j int) bool { return pieces[i].begin < pieces[j].begin })
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

// intrinsic reports whether a piece of string_compare begins at an offset, and where it ends.
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
				break // here the next piece begins; without this end, the time would be quadratic in hostile code
			}
		}
	}
	return "", 0
}

// The CPU traps if it divides the smallest number by -1. Java wants the smallest number. So C2 makes one piece of code
// for a division (cpu/x86/x86.ad, up to 24 x86_64.ad: cdql_enc and cdqq_enc, of all releases):
//
//	cmp eax, 0x80000000; jne 1f; xor edx, edx; cmp divisor, -1; je 2f; 1: cdq; idiv divisor; 2:
//
// For 64 bits the code is the same, but an instruction before it puts the smallest number into rdx.

// divisionMarks are the first bytes of the pieces: the comparison.
var divisionMarks = [...]struct {
	name  string
	begin []byte
}{
	{"int division", []byte{0x3d, 0, 0, 0, 0x80}},
	{"int division", []byte{0x81, 0xf8, 0, 0, 0, 0x80}},
	{"long division", []byte{0x48, 0xba, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x48, 0x3b, 0xc2}},
	{"long division", []byte{0x48, 0xba, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x48, 0x39, 0xd0}},
}

// highest is the only byte of the smallest number that is not zero.
const highest = 0x80

// divisions finds the pieces for divisions.
func divisions(code []byte, note func(name string, begin, end uint32)) {
	for from := 0; ; {
		n := bytes.IndexByte(code[from:], highest) // one search for both widths: most code has no division
		if n < 0 {
			return
		}
		at := from + n
		if from = at + 1; at < 4 || code[at-1]|code[at-2]|code[at-3] != 0 {
			continue
		}
		for _, mark := range divisionMarks {
			begin := at - bytes.IndexByte(mark.begin, highest)
			if begin < 0 || !bytes.HasPrefix(code[begin:], mark.begin) {
				continue
			}
			if end := division(code, begin+len(mark.begin), mark.begin[0] == 0x48); end > 0 {
				note(mark.name, uint32(begin), uint32(end))
			}
		}
	}
}

// division returns where the piece ends whose comparison ends at an offset, 0 if there is no such piece.
func division(code []byte, at int, wide bool) (end int) {
	var in inst
	for _, want := range [...]func() bool{
		func() bool { return in.Op == 0x75 },
		func() bool { return in.Op&^2 == 0x31 && !in.Mem && in.Reg == 2 && in.RM == 2 },
		func() bool { return in.Op == 0x83 && in.OpX == 7 && in.Imm == -1 },
		func() bool { return in.Op == 0x74 },
		func() bool { return in.Op == 0x99 },
		func() bool { return in.Op == 0xf7 && in.OpX == 7 },
	} {
		if at >= len(code) || !decode(code[at:], &in) || in.Map != 0 || in.Vec || !want() {
			return 0
		}
		at += in.Len
	}
	if in.W != wide {
		return 0
	}
	return at
}
