package arm64

import (
	"testing"

	"goprof/arch"
)

// TestRead: where the next instruction begins. The caret marks the instruction that is read.
func TestRead(t *testing.T) {
	for _, r := range []struct {
		name, code string
		want       arch.Inst
	}{
		{"nothing special", "^aa0103e0", arch.Inst{Len: 4}},
		{"a branch back", "d503201f d503201f ^54ffffcb", arch.Inst{Len: 4, Flow: arch.FlowBranch, HasTarget: true}},
		{"a branch out of the code", "^b4000800", arch.Inst{Len: 4, Flow: arch.FlowBranch, Target: 0x100}},
		{"a jump", "^14000002 d503201f d503201f", arch.Inst{Len: 4, Flow: arch.FlowJump, Target: 8, HasTarget: true}},
		{"a jump through a register", "^d61f0100", arch.Inst{Len: 4, Flow: arch.FlowJump}},
		{"a call", "^94000400", arch.Inst{Len: 4, Flow: arch.FlowCall}},
		{"a call through a register", "^d63f0100", arch.Inst{Len: 4, Flow: arch.FlowCall}},
		{"a return", "^d65f03c0", arch.Inst{Len: 4, Flow: arch.FlowReturn}},
		{"a trap", "^d4200000", arch.Inst{Len: 4, Flow: arch.FlowEnds}},
	} {
		code, pc := assemble(t, r.code)
		var in arch.Inst
		if !CPU.Read(code, uint32(pc), &in) || in != r.want {
			t.Errorf("%s: %+v, not %+v", r.name, in, r.want)
		}
	}
	var in arch.Inst
	if CPU.Read([]byte{0, 0, 0, 0}, 4, &in) || CPU.Read(nil, 0, &in) || CPU.Read([]byte{0x62, 0, 0}, 0, &in) {
		t.Errorf("an instruction where none is: %+v", in)
	}
}
