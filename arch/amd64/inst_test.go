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
		{"nothing special", "^4801d8", arch.Inst{Len: 3}},
		{"a branch back", "90 90 ^7cfc", arch.Inst{Len: 2, Flow: arch.FlowBranch, HasTarget: true}},
		{"a branch out of the code", "^0f8400010000", arch.Inst{Len: 6, Flow: arch.FlowBranch, Target: 0x106}},
		{"a jump", "^eb01 90 90", arch.Inst{Len: 2, Flow: arch.FlowJump, Target: 3, HasTarget: true}},
		{"a jump through a register", "^ffe0", arch.Inst{Len: 2, Flow: arch.FlowJump}},
		{"a call", "^e8fbffffff", arch.Inst{Len: 5, Flow: arch.FlowCall, HasTarget: true}},
		{"a call through a register", "^ffd0", arch.Inst{Len: 2, Flow: arch.FlowCall}},
		{"a return", "^c3", arch.Inst{Len: 1, Flow: arch.FlowReturn}},
		{"a trap", "^0f0b", arch.Inst{Len: 2, Flow: arch.FlowEnds}},
		{"a fast lock's exchange", "90 ^f0490fb118", arch.Inst{Len: 5, Base: arch.BaseOther, Swaps: true}},
		{"a copy", "^4889d8", arch.Inst{Len: 3, Kind: arch.KindCopy}},
		{"a load from the stack", "^4c8b442418", arch.Inst{Len: 5, Kind: arch.KindCopy, Base: arch.BaseStack,
			Disp: 24, Loads: true, Regs: 1 << 8}},
		{"a load of a class", "^448b5808", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 8, Loads: true, Regs: 1 << 11}},
		{"a load of an element", "^428b448b10", arch.Inst{Len: 5, Base: arch.BaseOther, Disp: 16, Loads: true,
			Indexed: true, Regs: 1}},
		{"a load of a byte", "^0fb6430c", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 12, Loads: true}},
		{"a load of a double", "^c5fb104310", arch.Inst{Len: 5, Base: arch.BaseOther, Disp: 16, Loads: true}},
		{"a store of a double", "^c5fb114310", arch.Inst{Len: 5, Base: arch.BaseOther, Disp: 16}},
		{"an address in an object", "^488d4310", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16}},
		{"a vector to the stack", "^c5fa7f442408", arch.Inst{Len: 6, Kind: arch.KindCopy, Base: arch.BaseStack, Disp: 8}},
		{"a comparison", "^4439d9", arch.Inst{Len: 3, Kind: arch.KindCompare, Regs: 1<<1 | 1<<11}},
		{"a comparison with a constant", "^81ff10ec0000", arch.Inst{Len: 6, Kind: arch.KindCompare, Regs: 1 << 7}},
		{"a subtraction", "^83e801", arch.Inst{Len: 3}},
		{"a test", "^4585d2", arch.Inst{Len: 3, Kind: arch.KindCompare, Regs: 1 << 10}},
		{"a test of bits", "^f7c002000000", arch.Inst{Len: 6, Kind: arch.KindCompare, Regs: 1 << 0}},
		{"a negation", "^f7d8", arch.Inst{Len: 2}},
		{"a comparison of doubles", "^c5f92ec1", arch.Inst{Len: 4, Kind: arch.KindCompare}},
		{"a byte of the thread", "^41807f3800", arch.Inst{Len: 5, Kind: arch.KindCompare, Base: arch.BaseThread, Disp: 0x38,
			Byte: true}},
		{"a card", "^803f04", arch.Inst{Len: 3, Kind: arch.KindCompare, Base: arch.BaseOther, Byte: true}},
		{"a card's number", "^49c1e809", arch.Inst{Len: 4, Shift: 9}},
		{"a shift of 32 bits", "^41c1e809", arch.Inst{Len: 4}},
		{"a shift with the sign", "^49c1f809", arch.Inst{Len: 4}},
		{"the table of cards", "^48bf00a0b62aa57f0000", arch.Inst{Len: 10, Kind: arch.KindLong}},
		{"a trap's request", "^beccffffff", arch.Inst{Len: 5, Arg: -52, Kind: arch.KindConst}},
		{"a constant for another register", "^bfccffffff", arch.Inst{Len: 5, Kind: arch.KindConst}},
		{"a prefetch", "^410f0d8a00010000", arch.Inst{Len: 8, Kind: arch.KindPrefetch, Base: arch.BaseOther, Disp: 256}},
		{"the frame is taken down", "^4883c430", arch.Inst{Len: 4, Kind: arch.KindLeave}},
		{"the frame's register", "^5d", arch.Inst{Len: 1, Kind: arch.KindLeave}},
		{"another register", "^59", arch.Inst{Len: 1}},
		{"another register, with the same bits in its opcode", "^415d", arch.Inst{Len: 2}},
		{"a comparison of rax with a constant", "^3d10ec0000", arch.Inst{Len: 5, Kind: arch.KindCompare, Regs: 1}},
		{"a store to the thread", "^4d899f40010000", arch.Inst{Len: 7, Base: arch.BaseThread, Disp: 0x140, Stores: true}},
		{"a constant for the stack", "^c744240805000000", arch.Inst{Len: 8, Kind: arch.KindConst, Base: arch.BaseStack,
			Disp: 8, Stores: true}},
		{"a sum with memory", "^4c015f10", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16}},
		{"zero", "^31ed", arch.Inst{Len: 2, Kind: arch.KindConst}},
		{"a difference in bits", "^31e9", arch.Inst{Len: 2}},
		{"an address of the stack", "^488d742420", arch.Inst{Len: 5, Kind: arch.KindConst, Base: arch.BaseStack, Disp: 32}},
		{"a push from the stack", "^ff742418", arch.Inst{Len: 4, Kind: arch.KindCopy, Base: arch.BaseStack, Disp: 24}},
		{"a pop to the stack", "^8f442408", arch.Inst{Len: 4, Kind: arch.KindCopy, Base: arch.BaseStack, Disp: 8}},
		{"a register to a vector", "^c4e1f96ec6", arch.Inst{Len: 5, Kind: arch.KindCopy}},
		{"nop", "^90", arch.Inst{Len: 1, Kind: arch.KindNop}},
		{"a long nop", "^660f1f440000", arch.Inst{Len: 6, Kind: arch.KindNop, Base: arch.BaseOther}},
		{"vzeroupper", "^c5f877", arch.Inst{Len: 3, Kind: arch.KindNop}},
		{"an exchange of registers", "^4190", arch.Inst{Len: 2}},
		{"another sum", "^4883c030", arch.Inst{Len: 4}},
		{"an exchange without a comparison", "^f0490fc118", arch.Inst{Len: 5, Base: arch.BaseOther}},
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
