package arch

// readAMD64 is described at CPU.Read.
func readAMD64(code []byte, at uint32, out *Inst) bool {
	var in x86Inst
	if uint64(at) >= uint64(len(code)) || uint64(len(code)) >= 1<<31 || !decodeX86(code[at:], &in) {
		return false
	}
	*out = Inst{Len: uint32(in.Len)}
	if in.Vec || in.Map > 1 {
		return true
	}
	target := int64(at) + int64(in.Len) + in.Imm
	switch op := in.Op; {
	case in.Map == 1 && op >= 0x80 && op <= 0x8f, // jcc
		in.Map == 0 && (op >= 0x70 && op <= 0x7f || op >= 0xe0 && op <= 0xe3): // jcc, loop
		out.Flow = FlowBranch
	case in.Map == 1:
		if op == 0x0b { // ud2
			out.Flow = FlowEnds
		}
		return true
	case op == 0xe9, op == 0xeb:
		out.Flow = FlowJump
	case op == 0xe8:
		out.Flow = FlowCall
	case op == 0xff && in.OpX == 2:
		out.Flow = FlowCall
		return true
	case op == 0xff && (in.OpX == 4 || in.OpX == 5):
		out.Flow = FlowJump
		return true
	case op == 0xc3, op == 0xc2:
		out.Flow = FlowReturn
		return true
	case op == 0xcc, op == 0xf4, op == 0xcb, op == 0xca, op == 0xcf: // int3, hlt, far returns
		out.Flow = FlowEnds
		return true
	default:
		return true
	}
	out.HasTarget = target >= 0 && target < int64(len(code))
	out.Target = uint32(target)
	return true
}
