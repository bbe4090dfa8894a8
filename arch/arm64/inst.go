package arm64

import "goprof/arch"

// Read is described at arch.Code.
func (code) Read(code []byte, at uint32, out *arch.Inst) bool {
	var in inst
	if uint64(at)+4 > uint64(len(code)) || uint64(len(code)) >= 1<<31 || !decode(code[at:], &in) {
		return false
	}
	*out = arch.Inst{Len: 4}
	switch in.Op {
	case opCond:
		out.Flow = arch.FlowBranch
	case opBranch:
		out.Flow = arch.FlowJump
	case opCall:
		out.Flow = arch.FlowCall
	case opRet:
		out.Flow = arch.FlowReturn
	case opJump:
		out.Flow = arch.FlowJump
	case opTrap:
		out.Flow = arch.FlowEnds
	}
	if in.Op == opCond || in.Op == opBranch {
		target := int64(at) + in.Imm
		out.HasTarget = target >= 0 && target < int64(len(code))
		out.Target = uint32(target)
	}
	return true
}
