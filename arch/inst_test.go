package arch

import "testing"

// TestRead: where instructions go on. The caret marks the one that is read.
func TestRead(t *testing.T) {
	for _, r := range []struct {
		name, code string // of amd64, and of arm64
		arm        string
		want       Inst
		arm64      Inst
	}{
		{"nothing special", "^4889d8", "^aa0103e0", Inst{Len: 3}, Inst{Len: 4}},
		{"a branch back", "90 90 ^7cfc", "d503201f d503201f ^54ffffcb", Inst{Len: 2, Flow: FlowBranch, HasTarget: true},
			Inst{Len: 4, Flow: FlowBranch, HasTarget: true}},
		{"a branch out of the code", "^0f8400010000", "^b4000800", Inst{Len: 6, Flow: FlowBranch, Target: 0x106},
			Inst{Len: 4, Flow: FlowBranch, Target: 0x100}},
		{"a jump", "^eb01 90 90", "^14000002 d503201f d503201f", Inst{Len: 2, Flow: FlowJump, Target: 3, HasTarget: true},
			Inst{Len: 4, Flow: FlowJump, Target: 8, HasTarget: true}},
		{"a jump through a register", "^ffe0", "^d61f0100", Inst{Len: 2, Flow: FlowJump}, Inst{Len: 4, Flow: FlowJump}},
		{"a call", "^e8fbffffff", "^94000400", Inst{Len: 5, Flow: FlowCall, HasTarget: true}, Inst{Len: 4, Flow: FlowCall}},
		{"a call through a register", "^ffd0", "^d63f0100", Inst{Len: 2, Flow: FlowCall}, Inst{Len: 4, Flow: FlowCall}},
		{"a return", "^c3", "^d65f03c0", Inst{Len: 1, Flow: FlowReturn}, Inst{Len: 4, Flow: FlowReturn}},
		{"a trap", "^0f0b", "^d4200000", Inst{Len: 2, Flow: FlowEnds}, Inst{Len: 4, Flow: FlowEnds}},
	} {
		code, pc := assemble(t, r.code)
		var in Inst
		if !AMD64.Read(code, uint32(pc), &in) || in != r.want {
			t.Errorf("amd64, %s: %+v, not %+v", r.name, in, r.want)
		}
		code, pc = a64(t, r.arm)
		if !ARM64.Read(code, uint32(pc), &in) || in != r.arm64 {
			t.Errorf("arm64, %s: %+v, not %+v", r.name, in, r.arm64)
		}
	}
	for _, cpu := range []*CPU{AMD64, ARM64} {
		var in Inst
		if cpu.Read([]byte{0, 0, 0, 0}, 4, &in) || cpu.Read(nil, 0, &in) || cpu.Read([]byte{0x62, 0, 0}, 0, &in) {
			t.Errorf("%s: an instruction where none is: %+v", cpu.Name, in)
		}
	}
}
