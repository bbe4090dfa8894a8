package amd64

import "encoding/binary"

// modRM decodes the ModRM byte at the start of b with SIB and displacement, and
// returns their length, or 0.
func (in *inst) modRM(b []byte, rex uint8) int {
	if len(b) == 0 {
		return 0
	}
	in.Mod, in.OpX = b[0]>>6, b[0]>>3&7
	in.Reg = in.OpX | rex&4<<1
	rm := b[0] & 7
	in.RM = rm | rex&1<<3
	if in.Mod == 3 {
		return 1
	}
	in.Mem = true
	n := 1
	base := int8(in.RM)
	if rm == 4 {
		if len(b) < 2 {
			return 0
		}
		sib := b[1]
		n = 2
		in.Index = sib>>3&7 | rex&2<<2
		in.Idx = in.Index != 4
		in.Scale = sib >> 6
		base = int8(sib&7 | rex&1<<3)
		if sib&7 == 5 && in.Mod == 0 {
			base = -1
		}
	} else if rm == 5 && in.Mod == 0 {
		base = -1
	}
	in.Base = base
	disp := 0
	switch {
	case in.Mod == 1:
		disp = 1
	case in.Mod == 2 || base == -1:
		disp = 4
	}
	if n+disp > len(b) {
		return 0
	}
	switch disp {
	case 1:
		in.Disp = int32(int8(b[n]))
	case 4:
		in.Disp = int32(binary.LittleEndian.Uint32(b[n:]))
	}
	return n + disp
}
