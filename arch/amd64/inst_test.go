package amd64

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
		{"nothing special", "^4889d8", arch.Inst{Len: 3}},
		{"a branch back", "90 90 ^7cfc", arch.Inst{Len: 2, Flow: arch.FlowBranch, HasTarget: true}},
		{"a branch out of the code", "^0f8400010000", arch.Inst{Len: 6, Flow: arch.FlowBranch, Target: 0x106}},
		{"a jump", "^eb01 90 90", arch.Inst{Len: 2, Flow: arch.FlowJump, Target: 3, HasTarget: true}},
		{"a jump through a register", "^ffe0", arch.Inst{Len: 2, Flow: arch.FlowJump}},
		{"a call", "^e8fbffffff", arch.Inst{Len: 5, Flow: arch.FlowCall, HasTarget: true}},
		{"a call through a register", "^ffd0", arch.Inst{Len: 2, Flow: arch.FlowCall}},
		{"a return", "^c3", arch.Inst{Len: 1, Flow: arch.FlowReturn}},
		{"a trap", "^0f0b", arch.Inst{Len: 2, Flow: arch.FlowEnds}},
		{"a fast lock's exchange", "90 ^f0490fb118", arch.Inst{Len: 5, Swaps: true}},
		{"an exchange without a comparison", "^f0490fc118", arch.Inst{Len: 5}},
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
