package arch

// readARM64 is described at CPU.Read.
func readARM64(code []byte, at uint32, out *Inst) bool {
	var in a64Inst
	if uint64(at)+4 > uint64(len(code)) || uint64(len(code)) >= 1<<31 || !decodeA64(code[at:], &in) {
		return false
	}
	*out = Inst{Len: 4}
	switch in.Op {
	case a64Cond:
		out.Flow = FlowBranch
	case a64Branch:
		out.Flow = FlowJump
	case a64Call:
		out.Flow = FlowCall
	case a64Ret:
		out.Flow = FlowReturn
	case a64Jump:
		out.Flow = FlowJump
	case a64Trap:
		out.Flow = FlowEnds
	}
	if in.Op == a64Cond || in.Op == a64Branch {
		target := int64(at) + in.Imm
		out.HasTarget = target >= 0 && target < int64(len(code))
		out.Target = uint32(target)
	}
	return true
}
