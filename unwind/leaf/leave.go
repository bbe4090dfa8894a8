package leaf

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// Only the method that owns the code removes the frame at its return. When an inlined method returns, its caller
// continues with the same frame.

// leave returns the owner if the instruction is part of the owner's return.
func (p *place) leave() verdict {
	if !p.code.leavesAt(p.n) {
		return verdict{}
	}
	if p.blob.Level != levelC2 { // C1's code: with the last known line
		if from := p.methodsOf(p.nearest(p.n, true)); from != nil {
			return verdict{from[len(from)-1:], profile.Certain}
		}
	}
	return verdict{p.blob.OwnScope(), profile.Certain}
}

func (p *place) mayLeave(s vmstructs.Scope) bool {
	b := p.bytecodeOf(s)
	return s.BCI < 0 || b != nil && b.Returns()
}

// maxLeave bounds the instructions that leave a method: two that take down the frame, the poll, its branch, the return.
const maxLeave = 6

// leavesAt reports whether an instruction is part of the owner's return: from the removal of the frame to the return
// itself (x86.ad and aarch64.ad, MachEpilogNode).
func (m *codeMap) leavesAt(n int32) bool {
	leaves := m.list[n].kindOf == arch.KindLeave
	for at, k := n, 0; !leaves && at != notInCode && k < maxLeave; k++ {
		at = m.before(at)
		if at == notInCode || m.list[at].flow != arch.FlowNext && m.list[at].flow != arch.FlowBranch {
			break
		}
		leaves = m.list[at].kindOf == arch.KindLeave
	}
	if !leaves {
		return false
	}
	for at, k := n, 0; at != notInCode && k < maxLeave; at, k = m.next(at), k+1 {
		switch m.list[at].flow {
		case arch.FlowReturn:
			return true
		case arch.FlowNext, arch.FlowBranch:
		default:
			return false
		}
	}
	return false
}
