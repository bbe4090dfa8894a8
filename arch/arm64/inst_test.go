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
		{"a comparison of registers", "^eb02003f", arch.Inst{Len: 4, Kind: arch.KindCompare}},
		{"a comparison with a constant", "^7100143f", arch.Inst{Len: 4, Kind: arch.KindCompare}},
		{"a test of bits", "^f27d003f", arch.Inst{Len: 4, Kind: arch.KindCompare}},
		{"a test of a register's bits", "^6a02003f", arch.Inst{Len: 4, Kind: arch.KindCompare}},
		{"a comparison of doubles", "^1e612000", arch.Inst{Len: 4, Kind: arch.KindCompare}},
		{"bits that are kept", "^927d0021", arch.Inst{Len: 4}},
		{"a copy", "^aa0203e1", arch.Inst{Len: 4, Kind: arch.KindCopy}},
		{"a load from the stack", "^f9400be1", arch.Inst{Len: 4, Kind: arch.KindCopy, Base: arch.BaseStack,
			Disp: 16, Loads: true}},
		{"two of them", "^a9410be1", arch.Inst{Len: 4, Kind: arch.KindCopy, Base: arch.BaseStack, Disp: 16}},
		{"a double to the stack", "^fd0007e0", arch.Inst{Len: 4, Kind: arch.KindCopy, Base: arch.BaseStack,
			Disp: 8, Stores: true}},
		{"a load from the thread", "^f941a788", arch.Inst{Len: 4, Base: arch.BaseThread, Disp: 0x348, Loads: true}},
		{"a load of a class", "^b9400883", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 8, Loads: true}},
		{"a load of a field of what was just loaded", "f9400041 ^b9400c20",
			arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 12, Loads: true}},
		{"a load of an element", "8b23c841 d503201f ^b9401020",
			arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16, Loads: true, Indexed: true}},
		{"the sum is copied", "8b23c841 aa0103e4 ^b9401080",
			arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16, Loads: true, Indexed: true}},
		{"a reference that is widened", "8b010fe0 ^b9400c03",
			arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 12, Loads: true}},
		{"a reference above the begin of the heap", "8b010f60 ^b9400c03",
			arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 12, Loads: true, Indexed: true, Narrow: true}},
		{"ints where that begin may be", "8b010b60 ^b9400c03",
			arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 12, Loads: true, Indexed: true}},
		{"an element on the stack", "8b21cfe0 ^b9400c03",
			arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 12, Loads: true, Indexed: true}},
		{"an address in an object", "91004041 ^b9401020", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16}},
		{"the sum is overwritten", "8b23c841 9a830041 ^b9401020",
			arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16, Loads: true}},
		{"behind a call", "8b23c841 94000002 ^b9401020",
			arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16, Loads: true}},
		{"behind what nobody knows", "8b23c841 00000000 ^b9401020",
			arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16}},
		{"a double of an object", "^fd400820", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16, Loads: true}},
		{"two vectors of an object", "^ad410440", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 32}},
		{"two doubles of an object", "^6d410440", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 16}},
		{"a structure of an object", "^4c407c41", arch.Inst{Len: 4, Base: arch.BaseOther}},
		{"a vector of an object", "^3dc00841", arch.Inst{Len: 4, Base: arch.BaseOther, Disp: 32, Loads: true}},
		{"a byte of an object", "^39400041", arch.Inst{Len: 4, Base: arch.BaseOther, Loads: true, Byte: true}},
		{"a byte to the thread", "^3900e381",
			arch.Inst{Len: 4, Base: arch.BaseThread, Disp: 0x38, Stores: true, Byte: true}},
		{"the number of a card", "^d349fc41", arch.Inst{Len: 4, Shift: 9}},
		{"a shift of 32 bits", "^53097c41", arch.Inst{Len: 4}},
		{"a shift to the left", "^d37ef441", arch.Inst{Len: 4}},
		{"the shift of a compressed reference", "^d37df041", arch.Inst{Len: 4, Widens: true}},
		{"the upper half of a constant", "^f2c00aa1", arch.Inst{Len: 4, Kind: arch.KindLong}},
		{"the uppermost part alone", "^d2e00aa1", arch.Inst{Len: 4, Kind: arch.KindLong}},
		{"a part of the lower half", "^f2a00aa1", arch.Inst{Len: 4, Kind: arch.KindConst}},
		{"a constant of 32 bits", "^52a00aa2", arch.Inst{Len: 4, Kind: arch.KindConst}},
		{"a trap's request", "^12800661", arch.Inst{Len: 4, Arg: -52, Kind: arch.KindConst}},
		{"a prefetch", "^f9806150", arch.Inst{Len: 4, Kind: arch.KindPrefetch}},
		{"an exchange of a word that compares", "^c8e8fc41", arch.Inst{Len: 4, Swaps: true, Kind: arch.KindAtomic}},
		{"of 32 bits, without order", "^88a87c41", arch.Inst{Len: 4, Swaps: true, Kind: arch.KindAtomic}},
		{"an exchange that does not compare", "^f8e88041", arch.Inst{Len: 4}},
		{"a load that reserves", "^c85ffc41", arch.Inst{Len: 4}},
		{"a store to the thread", "^f900a788", arch.Inst{Len: 4, Base: arch.BaseThread, Disp: 0x148, Stores: true}},
		{"a copy of 32 bits", "^2a0003fd", arch.Inst{Len: 4, Kind: arch.KindCopy}},
		{"a part of a constant", "^f2a24681", arch.Inst{Len: 4, Kind: arch.KindConst}},
		{"an address of the stack", "^910083e1", arch.Inst{Len: 4, Kind: arch.KindConst}},
		{"nop", "^d503201f", arch.Inst{Len: 4, Kind: arch.KindNop}},
		{"the mark behind a call", "^d503201f f280381f f280401f", arch.Inst{Len: 4, Kind: arch.KindNop, Disp: 1}},
		{"its second part", "d503201f ^f280381f f280401f", arch.Inst{Len: 4, Kind: arch.KindNop, Disp: 1}},
		{"its last part", "f280381f ^f2a0401f", arch.Inst{Len: 4, Kind: arch.KindNop, Disp: 1}},
		{"a nop before a part of a constant", "^d503201f f2a24681", arch.Inst{Len: 4, Kind: arch.KindNop}},
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

// TestOperands: which registers an instruction reads and writes, and what is not known. The instructions are those of
// LLVM's assembler.
func TestOperands(t *testing.T) {
	const x1, x2, x3, x4, sp = 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 31
	for _, r := range []struct {
		name, code string
		want       arch.Operands
		unknown    bool
	}{
		{name: "an address in an object", code: "91002041",
			want: arch.Operands{Reads: x2, Writes: x1, Computes: true}},
		{name: "the stack pointer", code: "d10083ff", want: arch.Operands{Reads: sp, Writes: sp}},
		{name: "an address on the stack", code: "110013e1",
			want: arch.Operands{Reads: sp, Writes: x1, Computes: true}},
		{name: "a difference, with flags", code: "71000483",
			want: arch.Operands{Reads: x4, Writes: x3, Computes: true}},
		{name: "a comparison with a constant", code: "7101fc3f", want: arch.Operands{Reads: x1}},
		{name: "a comparison", code: "eb02003f", want: arch.Operands{Reads: x1 | x2}},
		{name: "a sum with a shift", code: "8b030c41",
			want: arch.Operands{Reads: x2 | x3, Writes: x1, Computes: true}},
		{name: "a comparison with the stack pointer", code: "eb2363ff", want: arch.Operands{Reads: x3 | sp}},
		{name: "an element on the stack", code: "8b23cbe1",
			want: arch.Operands{Reads: x3 | sp, Writes: x1, Computes: true}},
		{name: "bits that are kept", code: "12001c41", want: arch.Operands{Reads: x2, Writes: x1, Computes: true}},
		{name: "a test of bits", code: "f240083f", want: arch.Operands{Reads: x1}},
		{name: "a mask", code: "b2089fe1", want: arch.Operands{Writes: x1}},
		{name: "a constant", code: "528000a1", want: arch.Operands{Writes: x1}},
		{name: "a part of a constant", code: "f2a000a1", want: arch.Operands{Reads: x1, Writes: x1}},
		{name: "a constant of 64 bits", code: "d28acf01 f2a24681 ^f2efe001",
			want: arch.Operands{Reads: x1, Writes: x1, Constant: 0x7f00000012345678}},
		{name: "in one part", code: "^d2efe001", want: arch.Operands{Writes: x1, Constant: 0x7f00 << 48}},
		{name: "whose begin is elsewhere", code: "d28acf02 f2a24681 ^f2efe001", want: arch.Operands{Reads: x1, Writes: x1}},
		{name: "that does not begin", code: "^f2efe001", want: arch.Operands{Reads: x1, Writes: x1}},
		{name: "an address in the code", code: "10000081", want: arch.Operands{Writes: x1}},
		{name: "a field of bits", code: "53031c41", want: arch.Operands{Reads: x2, Writes: x1, Computes: true}},
		{name: "one that is put in", code: "331d1041",
			want: arch.Operands{Reads: x1 | x2, Writes: x1, Computes: true}},
		{name: "of two registers", code: "93c31041", want: arch.Operands{Reads: x2 | x3, Writes: x1, Computes: true}},
		{name: "a copy", code: "aa0203e1", want: arch.Operands{Reads: x2, Writes: x1}},
		{name: "or", code: "aa030041", want: arch.Operands{Reads: x2 | x3, Writes: x1, Computes: true}},
		{name: "not", code: "2a2203e1", want: arch.Operands{Reads: x2, Writes: x1, Computes: true}},
		{name: "a negation", code: "4b0203e1", want: arch.Operands{Reads: x2, Writes: x1, Computes: true}},
		{name: "a sum with carry", code: "9a030041", want: arch.Operands{Reads: x2 | x3, Writes: x1, Computes: true}},
		{name: "a choice", code: "1a83b041", want: arch.Operands{Reads: x2 | x3, Writes: x1}},
		{name: "a flag", code: "1a9f17e1", want: arch.Operands{Writes: x1}},
		{name: "a comparison on a condition", code: "fa420020", want: arch.Operands{Reads: x1 | x2}},
		{name: "with a constant", code: "fa430820", want: arch.Operands{Reads: x1}},
		{name: "a quotient", code: "1ac30c41", want: arch.Operands{Reads: x2 | x3, Writes: x1, Computes: true}},
		{name: "a shift", code: "9ac32041", want: arch.Operands{Reads: x2 | x3, Writes: x1, Computes: true}},
		{name: "leading zeros", code: "dac01041", want: arch.Operands{Reads: x2, Writes: x1, Computes: true}},
		{name: "a product and a sum", code: "1b031041",
			want: arch.Operands{Reads: x2 | x3 | x4, Writes: x1, Computes: true}},
		{name: "a product", code: "9b037c41", want: arch.Operands{Reads: x2 | x3, Writes: x1, Computes: true}},
		{name: "a load", code: "b9400c41", want: arch.Operands{Reads: x2, Writes: x1}},
		{name: "a load with its sign", code: "b9800c41", want: arch.Operands{Reads: x2, Writes: x1}},
		{name: "a store", code: "f9000841", want: arch.Operands{Reads: x1 | x2}},
		{name: "a store of zero", code: "b900105f", want: arch.Operands{Reads: x2}},
		{name: "a store below", code: "b81fc041", want: arch.Operands{Reads: x1 | x2}},
		{name: "a load of an element", code: "f8637841", want: arch.Operands{Reads: x2 | x3, Writes: x1}},
		{name: "a store of an element", code: "38234841", want: arch.Operands{Reads: x1 | x2 | x3}},
		{name: "a load from the stack", code: "f9400be1", want: arch.Operands{Reads: sp, Writes: x1}},
		{name: "a load that moves the address", code: "f8408441", want: arch.Operands{Reads: x2, Writes: x1 | x2}},
		{name: "a store that moves it", code: "f8008c41", want: arch.Operands{Reads: x1 | x2, Writes: x2}},
		{name: "two loads", code: "a9410be1", want: arch.Operands{Reads: sp, Writes: x1 | x2}},
		{name: "two stores that make a frame", code: "a9bf0be1",
			want: arch.Operands{Reads: x1 | x2 | sp, Writes: sp}},
		{name: "a load of a double", code: "fd400441", want: arch.Operands{Reads: x2}},
		{name: "a store of a vector", code: "3ca36841", want: arch.Operands{Reads: x2 | x3}},
		{name: "two loads of doubles", code: "6d400861", want: arch.Operands{Reads: x3}},
		{name: "a prefetch", code: "f9802040", want: arch.Operands{Reads: x2}},
		{name: "a register to a double", code: "9e670041", want: arch.Operands{Reads: x2}},
		{name: "a double to a register", code: "9e660041", want: arch.Operands{Writes: x1}},
		{name: "an int made a double", code: "1e620041", want: arch.Operands{Reads: x2}},
		{name: "a double made an int", code: "1e780041", want: arch.Operands{Writes: x1}},
		{name: "a sum of doubles", code: "1e632841"},
		{name: "a branch", code: "5400008a"},
		{name: "a jump", code: "14000004"},
		{name: "a branch on zero", code: "34000081", want: arch.Operands{Reads: x1}},
		{name: "a branch on a bit", code: "37180081", want: arch.Operands{Reads: x1}},
		{name: "nop", code: "d503201f"},
		{name: "an atomic sum", code: "f8210062", unknown: true},
		{name: "an exchange", code: "c8a17c62", unknown: true},
		{name: "a load in order", code: "c8dffc41", unknown: true},
		{name: "a load of a constant", code: "58000081", unknown: true},
		{name: "an element of a vector to a register", code: "0e043c41", unknown: true},
		{name: "a call", code: "94000004", unknown: true},
		{name: "a return", code: "d65f03c0", unknown: true},
		{name: "a register of the system", code: "d53bd041", unknown: true},
	} {
		code, pc := assemble(t, r.code)
		got, ok := CPU.Operands(code, uint32(pc))
		if ok == r.unknown || ok && got != r.want {
			t.Errorf("%s: %+v, %v", r.name, got, ok)
		}
		if _, ok := CPU.Operands(code, uint32(pc)+1); ok {
			t.Errorf("%s: where the code ends", r.name)
		}
	}
}
