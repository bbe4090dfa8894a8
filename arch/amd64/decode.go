package amd64

import "encoding/binary"

// inst is one instruction, decoded just far enough to know its length, the registers of its operands and where it may
// go (Intel SDM volume 2, chapter 2 and appendix A). golang.org/x/arch knows neither VEX nor EVEX, which HotSpot's
// stubs use much, and decodes ENDBR64 as another instruction.
type inst struct {
	Len   int
	Map   uint8 // 0 one byte, 1 0F, 2 0F38, 3 0F3A
	Op    uint8
	Vec   bool  // VEX or EVEX: its registers are vectors
	W     bool  // 64-bit operand
	Rep   bool  // F2 or F3, in VEX and EVEX too
	Lock  bool  // F0
	V     uint8 // VEX.vvvv
	Mod   uint8
	Reg   uint8 // the reg field with REX.R
	RM    uint8 // the r/m field with REX.B; for Mod 3 a register
	OpX   uint8 // the reg field without REX: an opcode extension
	Mem   bool  // RM is memory: Base + Disp (+ an index)
	Base  int8  // -1: none, or relative to rip
	Idx   bool
	Index uint8 // the register of the index, if Idx
	Scale uint8 // the index is shifted left by as many bits
	Disp  int32
	Imm   int64
}

// These values are in the tables of opcodes in place of the number of immediate bytes.
const (
	immZ  = 0x10 // 2 with prefix 66, otherwise 4
	immV  = 0x11 // 8 with REX.W, 2 with prefix 66, otherwise 4
	immA  = 0x12 // an address: 8
	mrm   = 0x80 // has a ModRM byte
	bad   = 0x40 // not an instruction in 64-bit mode
	immF6 = 0x13 // group 3: an immediate only for TEST
	immF7 = 0x14
)

var oneByte = buildOneByte()

func buildOneByte() (t [256]uint8) {
	for base := 0; base < 0x40; base += 8 {
		for i := range 4 {
			t[base+i] = mrm
		}
		t[base+4], t[base+5], t[base+6], t[base+7] = 1, immZ, bad, bad
	}
	for op := 0x40; op < 0x50; op++ {
		t[op] = bad // REX before another prefix has no effect: no compiler writes that
	}
	for _, op := range []int{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3} {
		t[op] = bad
	}
	t[0x60], t[0x61] = bad, bad
	t[0x63] = mrm
	t[0x68], t[0x69], t[0x6a], t[0x6b] = immZ, mrm|immZ, 1, mrm|1
	for op := 0x70; op < 0x80; op++ {
		t[op] = 1
	}
	t[0x80], t[0x81], t[0x82], t[0x83] = mrm|1, mrm|immZ, bad, mrm|1
	for op := 0x84; op < 0x90; op++ {
		t[op] = mrm
	}
	t[0x9a] = bad
	for op := 0xa0; op < 0xa4; op++ {
		t[op] = immA
	}
	t[0xa8], t[0xa9] = 1, immZ
	for op := 0xb0; op < 0xb8; op++ {
		t[op], t[op+8] = 1, immV
	}
	t[0xc0], t[0xc1], t[0xc2] = mrm|1, mrm|1, 2
	t[0xc6], t[0xc7], t[0xc8], t[0xca], t[0xcd], t[0xce] = mrm|1, mrm|immZ, 3, 2, 1, bad
	for op := 0xd0; op < 0xd4; op++ {
		t[op] = mrm
	}
	t[0xd4], t[0xd5], t[0xd6] = bad, bad, bad // d5 is REX2, APX's prefix: such code is not followed
	for op := 0xd8; op < 0xe0; op++ {
		t[op] = mrm
	}
	for op := 0xe0; op < 0xe8; op++ {
		t[op] = 1
	}
	t[0xe8], t[0xe9], t[0xea], t[0xeb] = 4, 4, bad, 1
	t[0xf6], t[0xf7], t[0xfe], t[0xff] = mrm|immF6, mrm|immF7, mrm, mrm
	return t
}

var twoByte = buildTwoByte()

func buildTwoByte() (t [256]uint8) {
	for op := range t {
		t[op] = mrm
	}
	for _, op := range []int{0x05, 0x06, 0x07, 0x08, 0x09, 0x0b, 0x0e, 0x77, 0xa0, 0xa1, 0xa2, 0xa8, 0xa9, 0xaa} {
		t[op] = 0
	}
	for op := 0x30; op < 0x38; op++ {
		t[op] = 0
	}
	for op := 0xc8; op < 0xd0; op++ {
		t[op] = 0
	}
	for op := 0x80; op < 0x90; op++ {
		t[op] = 4
	}
	for _, op := range []int{0x70, 0x71, 0x72, 0x73, 0xa4, 0xac, 0xba, 0xc2, 0xc4, 0xc5, 0xc6} {
		t[op] = mrm | 1
	}
	for _, op := range []int{0x04, 0x0a, 0x0c, 0x0f, 0x24, 0x25, 0x26, 0x27, 0x39, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f} {
		t[op] = bad
	}
	return t
}

func decode(b []byte, in *inst) bool {
	*in = inst{Base: -1}
	var rex uint8
	opsize := false
	i := 0
prefixes:
	for ; i < len(b) && i < 14; i++ {
		switch b[i] {
		case 0x66:
			opsize = true
		case 0xf2, 0xf3:
			in.Rep = true
		case 0xf0:
			in.Lock = true
		case 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0x67:
		default:
			break prefixes
		}
	}
	if i < len(b) && b[i]&0xf0 == 0x40 {
		rex = b[i]
		i++
	}
	if i+1 >= len(b) && (i >= len(b) || oneByte[b[i]] != 0) {
		return false
	}
	op := b[i]
	i++
	switch op {
	case 0x0f, 0x62, 0xc4, 0xc5:
		if op, i, rex = in.chooseMap(b, i, rex); i == 0 {
			return false
		}
	}
	attr := in.attributes(op)
	if attr&bad != 0 {
		return false
	}
	in.Op, in.W = op, rex&8 != 0
	in.RM = op&7 | rex&1<<3 // the register in the opcode of push, pop and mov
	if attr&mrm != 0 {
		n := in.modRM(b[i:], rex)
		if n == 0 {
			return false
		}
		i += n
	}
	n := immSize(attr&0x1f, in, opsize)
	if i+n > len(b) || i+n > 15 {
		return false
	}
	switch n {
	case 1:
		in.Imm = int64(int8(b[i]))
	case 2, 3:
		in.Imm = int64(binary.LittleEndian.Uint16(b[i:]))
	case 4:
		in.Imm = int64(int32(binary.LittleEndian.Uint32(b[i:])))
	}
	in.Len = i + n
	return true
}

// chooseMap reads an opcode that follows 0x0f, VEX or EVEX. These bytes choose the opcode's map, which chooseMap notes
// in in.Map. The first of them is b[i-1]. rex is the REX prefix before them, or 0. bits has W, R, X and B in the places
// that they have in REX: VEX and EVEX contain these bits themselves. next is the index of the byte behind the opcode.
// It is 0 if no valid opcode follows.
func (in *inst) chooseMap(b []byte, i int, rex uint8) (op uint8, next int, bits uint8) {
	long := b[i-1] != 0x0f
	if long && rex != 0 {
		return 0, 0, 0
	}
	switch {
	case b[i-1] == 0xc5 && i+1 < len(b):
		in.Map = 1
		in.takeVEX(b[i])
		return b[i+1], i + 2, ^b[i] >> 5 & 4
	case b[i-1] == 0xc4 && i+2 < len(b):
		in.Map = b[i] & 0x1f
		in.takeVEX(b[i+1])
		return b[i+2], i + 3, ^b[i]>>5&7 | b[i+1]>>4&8
	case b[i-1] == 0x62 && i+3 < len(b):
		in.Map = b[i] & 7
		in.takeVEX(b[i+1])
		return b[i+3], i + 4, ^b[i]>>5&7 | b[i+1]>>4&8
	case long:
		return 0, 0, 0
	}
	op, i = b[i], i+1
	in.Map = 1
	if op != 0x38 && op != 0x3a {
		return op, i, rex
	}
	if i >= len(b) {
		return 0, 0, 0
	}
	in.Map = 2
	if op == 0x3a {
		in.Map = 3
	}
	return b[i], i + 1, rex
}

// attributes returns what the tables say of an opcode in the map of its instruction.
func (in *inst) attributes(op uint8) uint8 {
	switch {
	case in.Map == 0 && !in.Vec:
		return oneByte[op]
	case in.Map == 1:
		return twoByte[op]
	case in.Map == 2 || in.Map == 5 || in.Map == 6:
		return mrm
	case in.Map == 3:
		return mrm | 1
	}
	return bad // map 4 is APX's
}

// takeVEX takes the last byte of a VEX prefix, or the similar byte of EVEX.
func (in *inst) takeVEX(b byte) {
	in.Vec, in.V, in.Rep = true, ^b>>3&15, b&3 >= 2
}

func immSize(kind uint8, in *inst, opsize bool) int {
	switch kind {
	case immZ, immV:
		if kind == immV && in.W {
			return 8
		}
		if opsize {
			return 2
		}
		return 4
	case immA:
		return 8
	case immF6:
		if in.OpX < 2 {
			return 1
		}
		return 0
	case immF7:
		if in.OpX < 2 {
			return immSize(immZ, in, opsize)
		}
		return 0
	}
	return int(kind)
}
