package amd64

import "bytes"

// The CPU traps if it divides the smallest number by -1. Java wants the smallest number. So C2 makes one piece of code
// for a division (cpu/x86/x86.ad, up to 24 x86_64.ad: cdql_enc and cdqq_enc, of all releases):
//
//	cmp eax, 0x80000000; jne 1f; xor edx, edx; cmp divisor, -1; je 2f; 1: cdq; idiv divisor; 2:
//
// and the same of 64 bits, behind what puts the smallest number into rdx.

// divisionMarks are the beginnings: the comparison.
var divisionMarks = [...]struct {
	name  string
	begin []byte
}{
	{"int division", []byte{0x3d, 0, 0, 0, 0x80}},
	{"int division", []byte{0x81, 0xf8, 0, 0, 0, 0x80}},
	{"long division", []byte{0x48, 0xba, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x48, 0x3b, 0xc2}},
	{"long division", []byte{0x48, 0xba, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x48, 0x39, 0xd0}},
}

// divisions finds such pieces.
func divisions(code []byte, note func(name string, begin, end uint32)) {
	for _, mark := range divisionMarks {
		for from := 0; ; {
			n := bytes.Index(code[from:], mark.begin)
			if n < 0 {
				break
			}
			begin := from + n
			from = begin + len(mark.begin)
			if end := division(code, from, mark.begin[0] == 0x48); end > 0 {
				note(mark.name, uint32(begin), uint32(end))
			}
		}
	}
}

// division returns where a piece ends whose comparison ends at an offset, 0 if there is no such piece.
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
