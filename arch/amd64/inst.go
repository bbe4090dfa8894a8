package amd64

import "goprof/arch"

// Read is described at arch.Code.
func (code) Read(code []byte, at uint32, out *arch.Inst) bool {
	var in inst
	if uint64(at) >= uint64(len(code)) || uint64(len(code)) >= 1<<31 || !decode(code[at:], &in) {
		return false
	}
	*out = arch.Inst{Len: uint32(in.Len)}
	if in.Mem && in.Base >= 0 {
		out.Disp = in.Disp
	}
	if in.Vec || in.Map > 1 {
		return true
	}
	out.Swaps = in.Map == 1 && in.Op == 0xb1
	target := int64(at) + int64(in.Len) + in.Imm
	switch op := in.Op; {
	case in.Map == 1 && op >= 0x80 && op <= 0x8f, // jcc
		in.Map == 0 && (op >= 0x70 && op <= 0x7f || op >= 0xe0 && op <= 0xe3): // jcc, loop
		out.Flow = arch.FlowBranch
	case in.Map == 1:
		if op == 0x0b { // ud2
			out.Flow = arch.FlowEnds
		}
		return true
	case op == 0xe9, op == 0xeb:
		out.Flow = arch.FlowJump
	case op == 0xe8:
		out.Flow = arch.FlowCall
	case op == 0xff && in.OpX == 2:
		out.Flow = arch.FlowCall
		return true
	case op == 0xff && (in.OpX == 4 || in.OpX == 5):
		out.Flow = arch.FlowJump
		return true
	case op == 0xc3, op == 0xc2:
		out.Flow = arch.FlowReturn
		return true
	case op == 0xcc, op == 0xf4, op == 0xcb, op == 0xca, op == 0xcf: // int3, hlt, far returns
		out.Flow = arch.FlowEnds
		return true
	default:
		return true
	}
	out.HasTarget = target >= 0 && target < int64(len(code))
	out.Target = uint32(target)
	return true
}
