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
		{"nothing special", "^f1000421", arch.Inst{Len: 4}},
		{"a branch back", "d503201f d503201f ^54ffffcb", arch.Inst{Len: 4, Flow: arch.FlowBranch, HasTarget: true}},
		{"a branch out of the code", "^b4000800", arch.Inst{Len: 4, Flow: arch.FlowBranch, Target: 0x100}},
		{"a jump", "^14000002 d503201f d503201f", arch.Inst{Len: 4, Flow: arch.FlowJump, Target: 8, HasTarget: true}},
		{"a jump through a register", "^d61f0100", arch.Inst{Len: 4, Flow: arch.FlowJump}},
		{"a call", "^94000400", arch.Inst{Len: 4, Flow: arch.FlowCall}},
		{"a call through a register", "^d63f0100", arch.Inst{Len: 4, Flow: arch.FlowCall}},
		{"a return", "^d65f03c0", arch.Inst{Len: 4, Flow: arch.FlowReturn}},
		{"a trap", "^d4200000", arch.Inst{Len: 4, Flow: arch.FlowEnds}},
		{"a comparison of registers", "^eb02003f", arch.Inst{Len: 4, Kind: arch.KindCompare, Regs: 1<<1 | 1<<2}},
		{"a comparison with a constant", "^7100143f", arch.Inst{Len: 4, Kind: arch.KindCompare, Regs: 1 << 1}},
		{"a test of bits", "^f27d003f", arch.Inst{Len: 4, Kind: arch.KindCompare, Regs: 1 << 1}},
		{"a test of a register's bits", "^6a02003f", arch.Inst{Len: 4, Kind: arch.KindCompare, Regs: 1<<1 | 1<<2}},
		{"a comparison of doubles", "^1e612000", arch.Inst{Len: 4, Kind: arch.KindCompare}},
		{"bits that are kept", "^927d0021", arch.Inst{Len: 4}},
		{"a copy", "^aa0203e1", arch.Inst{Len: 4, Kind: arch.KindCopy}},
		{"a load from the stack", "^f9400be1", arch.Inst{Len: 4, Kind: arch.KindCopy, Base: arch.BaseStack,
			Disp: 16, Loads: true, Regs: 1 << 1}},
		{"two of them", "^a9410be1", arch.Inst{Len: 4, Kind: arch.KindCopy, Base: arch.BaseStack, Disp: 16}},
		{"a double to the stack", "^fd0007e0", arch.Inst{Len: 4, Kind: arch.KindCopy, Base: arch.BaseStack,
			Disp: 8, Stores: true}},
		{"a load from the thread", "^f941a788", arch.Inst{Len: 4, Base: arch.BaseThread, Disp: 0x348, Regs: 1 << 8}},
		{"a load of a class", "^b9400883", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 8, Regs: 1 << 3}},
		{"a trap's request", "^12800661", arch.Inst{Len: 4, Arg: -52, Kind: arch.KindConst}},
		{"a prefetch", "^f9806150", arch.Inst{Len: 4, Kind: arch.KindPrefetch}},
		{"an exchange of a word that compares", "^c8e8fc41", arch.Inst{Len: 4, Swaps: true}},
		{"of 32 bits, without order", "^88a87c41", arch.Inst{Len: 4, Swaps: true}},
		{"an exchange that does not compare", "^f8e88041", arch.Inst{Len: 4, Regs: 1 << 1}},
		{"a load that reserves", "^c85ffc41", arch.Inst{Len: 4}},
		{"a store to the thread", "^f900a788", arch.Inst{Len: 4, Base: arch.BaseThread, Disp: 0x148, Stores: true}},
		{"a copy of 32 bits", "^2a0003fd", arch.Inst{Len: 4, Kind: arch.KindCopy}},
		{"a part of a constant", "^f2a24681", arch.Inst{Len: 4, Kind: arch.KindConst}},
		{"an address of the stack", "^910083e1", arch.Inst{Len: 4, Kind: arch.KindConst}},
		{"nop", "^d503201f", arch.Inst{Len: 4, Kind: arch.KindNop}},
		{"a reference that is widened", "^8b0c014a", arch.Inst{Len: 4}},
		{"the frame is taken down", "^910083ff", arch.Inst{Len: 4, Kind: arch.KindLeave}},
		{"the frame's registers", "^a9417bfd", arch.Inst{Len: 4, Kind: arch.KindLeave, Base: arch.BaseStack, Disp: 16}},
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
