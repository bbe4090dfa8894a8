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
		{"a fast lock's exchange", "90 ^f0490fb118", arch.Inst{Len: 5, Base: arch.BaseOther, Swaps: true,
			Kind: arch.KindAtomic}},
		{"a sum in memory, for all CPUs at once", "^f0480fc14310", arch.Inst{Len: 6, Base: arch.BaseOther, Disp: 16,
			Kind: arch.KindAtomic}},
		{"a fence", "^f0834424c000", arch.Inst{Len: 6, Base: arch.BaseStack, Disp: -64, Kind: arch.KindAtomic}},
		{"an exchange of registers", "^87d8", arch.Inst{Len: 2}},
		{"a sum in memory, for one CPU", "^480fc14310", arch.Inst{Len: 5, Base: arch.BaseOther, Disp: 16}},
		{"a copy", "^4889d8", arch.Inst{Len: 3, Kind: arch.KindCopy}},
		{"a load from the stack", "^4c8b442418", arch.Inst{Len: 5, Kind: arch.KindCopy, Base: arch.BaseStack,
			Disp: 24, Loads: true}},
		{"a load of a class", "^448b5808", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 8, Loads: true}},
		{"a load of an element", "^428b448b10", arch.Inst{Len: 5, Base: arch.BaseOther, Disp: 16, Loads: true,
			Indexed: true}},
		{"a load of a field by a compressed reference", "^438b5cc410", arch.Inst{Len: 5, Base: arch.BaseOther, Disp: 16,
			Loads: true, Indexed: true, Narrow: true}},
		{"the same with another scale", "^438b5c8410", arch.Inst{Len: 5, Base: arch.BaseOther, Disp: 16, Loads: true,
			Indexed: true}},
		{"a store of an element", "^4289448b10", arch.Inst{Len: 5, Base: arch.BaseOther, Disp: 16, Stores: true,
			Indexed: true}},
		{"a load of a byte", "^0fb6430c", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 12, Loads: true}},
		{"a load of a double", "^c5fb104310", arch.Inst{Len: 5, Base: arch.BaseOther, Disp: 16, Loads: true}},
		{"a store of a double", "^c5fb114310", arch.Inst{Len: 5, Base: arch.BaseOther, Disp: 16}},
		{"an address in an object", "^488d4310", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16}},
		{"a vector to the stack", "^c5fa7f442408", arch.Inst{Len: 6, Kind: arch.KindCopy, Base: arch.BaseStack, Disp: 8}},
		{"a comparison", "^4439d9", arch.Inst{Len: 3, Kind: arch.KindCompare}},
		{"a comparison with a constant", "^81ff10ec0000", arch.Inst{Len: 6, Kind: arch.KindCompare}},
		{"a subtraction", "^83e801", arch.Inst{Len: 3}},
		{"a test", "^4585d2", arch.Inst{Len: 3, Kind: arch.KindCompare}},
		{"a test of bits", "^f7c002000000", arch.Inst{Len: 6, Kind: arch.KindCompare}},
		{"a negation", "^f7d8", arch.Inst{Len: 2}},
		{"a comparison of doubles", "^c5f92ec1", arch.Inst{Len: 4, Kind: arch.KindCompare}},
		{"a byte of the thread", "^41807f3800", arch.Inst{Len: 5, Kind: arch.KindCompare, Base: arch.BaseThread, Disp: 0x38,
			Byte: true}},
		{"a card", "^803f04", arch.Inst{Len: 3, Kind: arch.KindCompare, Base: arch.BaseOther, Byte: true}},
		{"a card's number", "^49c1e809", arch.Inst{Len: 4, Shift: 9}},
		{"a shift of 32 bits", "^41c1e809", arch.Inst{Len: 4}},
		{"a shift with the sign", "^49c1f809", arch.Inst{Len: 4}},
		{"a shift to the left", "^49c1e004", arch.Inst{Len: 4}},
		{"the shift of a compressed reference", "^49c1e003", arch.Inst{Len: 4, Widens: true}},
		{"the same of 32 bits", "^41c1e003", arch.Inst{Len: 4}},
		{"the table of cards", "^48bf00a0b62aa57f0000", arch.Inst{Len: 10, Kind: arch.KindLong}},
		{"a trap's request", "^beccffffff", arch.Inst{Len: 5, Arg: -52, Kind: arch.KindConst}},
		{"a constant for another register", "^bfccffffff", arch.Inst{Len: 5, Kind: arch.KindConst}},
		{"a prefetch", "^410f0d8a00010000", arch.Inst{Len: 8, Kind: arch.KindPrefetch, Base: arch.BaseOther, Disp: 256}},
		{"the frame is taken down", "^4883c430", arch.Inst{Len: 4, Kind: arch.KindLeave}},
		{"the frame's register", "^5d", arch.Inst{Len: 1, Kind: arch.KindLeave}},
		{"another register", "^59", arch.Inst{Len: 1}},
		{"another register, with the same bits in its opcode", "^415d", arch.Inst{Len: 2}},
		{"a comparison of rax with a constant", "^3d10ec0000", arch.Inst{Len: 5, Kind: arch.KindCompare}},
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
		{"an exchange without a comparison", "^f0490fc118", arch.Inst{Len: 5, Base: arch.BaseOther, Kind: arch.KindAtomic}},
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

// TestOperands: which registers an instruction reads and writes, and what is not known.
func TestOperands(t *testing.T) {
	const rax, rcx, rdx, rbx, rsp, rsi, rdi, r8, r10, r11 = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 6, 1 << 7, 1 << 8,
		1 << 10, 1 << 11
	for _, r := range []struct {
		name, code string
		want       arch.Operands
		unknown    bool
	}{
		{name: "a copy", code: "4889d8", want: arch.Operands{Reads: rbx, Writes: rax}},
		{name: "a load", code: "448b5808", want: arch.Operands{Reads: rax, Writes: r11}},
		{name: "a load of an element", code: "428b448b10", want: arch.Operands{Reads: rbx | 1<<9, Writes: rax}},
		{name: "an index of r12", code: "428b44a310", want: arch.Operands{Reads: rbx | 1<<12, Writes: rax}},
		{name: "a load from the stack", code: "4c8b442418", want: arch.Operands{Reads: rsp, Writes: r8}},
		{name: "a load of a byte", code: "0fb6430c", want: arch.Operands{Reads: rbx, Writes: rax}},
		{name: "a byte made wider", code: "0fb6c3", want: arch.Operands{Reads: rbx, Writes: rax, Computes: true}},
		{name: "a store", code: "89430c", want: arch.Operands{Reads: rax | rbx}},
		{name: "a constant of 64 bits", code: "48be00a0b62aa57f0000", want: arch.Operands{Writes: rsi,
			Constant: 0x7fa52ab6a000}},
		{name: "a constant", code: "beccffffff", want: arch.Operands{Writes: rsi}},
		{name: "a sum", code: "4801d8", want: arch.Operands{Reads: rax | rbx, Writes: rax, Computes: true}},
		{name: "a sum, the other way around", code: "4803c3", want: arch.Operands{Reads: rax | rbx, Writes: rax,
			Computes: true}},
		{name: "a sum with memory", code: "034314", want: arch.Operands{Reads: rax | rbx, Writes: rax}},
		{name: "a sum in memory", code: "014314", want: arch.Operands{Reads: rax | rbx}},
		{name: "a sum with a constant", code: "83c001", want: arch.Operands{Reads: rax, Writes: rax, Computes: true}},
		{name: "rax and a constant", code: "0510000000", want: arch.Operands{Reads: rax, Writes: rax, Computes: true}},
		{name: "one more", code: "ffc0", want: arch.Operands{Reads: rax, Writes: rax, Computes: true}},
		{name: "a shift", code: "41d3e2", want: arch.Operands{Reads: r10 | rcx, Writes: r10, Computes: true}},
		{name: "a product", code: "0fafc3", want: arch.Operands{Reads: rax | rbx, Writes: rax, Computes: true}},
		{name: "an address", code: "488d4310", want: arch.Operands{Reads: rbx, Writes: rax, Computes: true}},
		{name: "a quotient", code: "f7fb", want: arch.Operands{Reads: rax | rdx | rbx, Writes: rax | rdx, Computes: true}},
		{name: "its sign", code: "99", want: arch.Operands{Reads: rax, Writes: rdx, Computes: true}},
		{name: "a comparison", code: "4439d9", want: arch.Operands{Reads: rcx | r11}},
		{name: "a comparison with a constant", code: "81ff10ec0000", want: arch.Operands{Reads: rdi}},
		{name: "a test", code: "4585d2", want: arch.Operands{Reads: r10}},
		{name: "a choice", code: "0f4cc3", want: arch.Operands{Reads: rax | rbx, Writes: rax}},
		{name: "a branch", code: "7c10"},
		{name: "nop", code: "90"},
		{name: "a register to a vector", code: "c4e1f96ec6", want: arch.Operands{Reads: rsi}},
		{name: "an int made a double", code: "c5fb2ac6", want: arch.Operands{Reads: rsi}},
		{name: "a word into a vector", code: "c5f9c4c603", want: arch.Operands{Reads: rsi}},
		{name: "a long nop", code: "0f1f4000"},
		{name: "a vector to a register", code: "c4e1f97ec6", want: arch.Operands{Writes: rsi}},
		{name: "a sum of doubles", code: "c5fb58c1"},
		{name: "a double to an int", code: "f20f2cc0", unknown: true},
		{name: "a bit of a double", code: "660f50c0", unknown: true},
		{name: "an exchange of registers", code: "4190", unknown: true},
		{name: "a product of 128 bits", code: "48f7e3", unknown: true},
		{name: "a call", code: "e8fbffffff", unknown: true},
		{name: "a push", code: "53", unknown: true},
		{name: "an exchange with memory", code: "f0490fb118", unknown: true},
	} {
		code, pc := assemble(t, "^"+r.code)
		got, ok := CPU.Operands(code, uint32(pc))
		if ok == r.unknown || ok && got != r.want {
			t.Errorf("%s: %+v %v, not %+v", r.name, got, ok, r.want)
		}
	}
}
