package arm64

import (
	"testing"

	"goprof/arch"
)

// TestCode: what the CPU finds out from pieces of code.
func TestCode(t *testing.T) {
	var r arch.Regs
	r[regPC], r[8] = 0x800000000, 0x7f0b5c001240
	bytes := func(words string) []byte { code, _ := assemble(t, words); return code }
	for _, c := range []struct {
		want uint64
		code string
	}{
		// mov x8, #0x1240; movk x8, #0x5c00, lsl #16; movk x8, #0x7f0b, lsl #32; br x8
		{0x7f0b5c001240, "d2824808 f2ab8008 f2cfe168 d61f0100"},

		{0x7f0b5c001240, "d61f0100"}, // br x8

		{0x800010040, "90000088 91010108 d61f0100"}, // adrp x8, 0x10000; add x8, x8, #0x40; br x8

		{0x800000110, "14000044"}, // b .+0x110

		{0, "f9400008 d61f0100"}, // ldr x8, [x0]; br x8

		{0, "d503201f d65f03c0"}, // nop; ret

	} {
		if got, ok := CPU.Trampoline(bytes(c.code), &r); ok != (c.want != 0) || ok && got != c.want {
			t.Errorf("trampoline %s: %#x %v", c.code, got, ok)
		}
	}
	thread := bytes("f9430f88 9100011f") // ldr x8, [x28, #0x618]; mov sp, x8

	if at, ok := CPU.ThreadSlot(thread); !ok || at != 0x618 {
		t.Errorf("thread slot: %#x %v", at, ok)
	}
	if _, ok := CPU.ThreadSlot(thread[4:]); ok {
		t.Error("a thread slot in half of the code")
	}
	if reg, ok := CPU.SenderSP(bytes("910003ed d63f0080")); // mov x13, sp; blr x4
	!ok || reg != 13 {
		t.Errorf("sender sp: %d %v", reg, ok)
	}
	if _, ok := CPU.SenderSP(bytes("aa0e03ed d63f0080")); // mov x13, x14; blr x4
	ok {
		t.Error("a sender sp that is none")
	}
	// adrp x16, 0x10000; ldr x17, [x16, #8]; add x16, x16, #8; br x17
	plt := bytes("90000010 f9400611 91002210 d61f0220")
	signed := bytes("d503245f 90000010 f9400611 91002210 d503219f d61f0220") // bti c before, autia1716 in it
	for _, stub := range [][]byte{plt, signed} {
		for at := 0; at < len(stub); at += 4 {
			if !CPU.LinkerStub(stub[at:]) {
				t.Errorf("linker's stub of %d bytes at %d", len(stub), at)
			}
		}
	}
	if len(signed) > arch.MaxLinkerStub {
		t.Error("longer than what is read")
	}
	if CPU.LinkerStub(plt[:12]) || CPU.LinkerStub(bytes("f9400211 d61f0200")) { // ldr x17, [x16]; br x16

		t.Error("a linker's stub that is none")
	}
	for words, want := range map[string]int64{
		"f9400421 17fffffe": -4, // ldr x1, [x1, #8]; b .-8
		"f9000421 14000010": 68, // str x1, [x1, #8]; b .+0x40
		"9b010c40 17fffffe": -4, // madd x0, x2, x1, x3; b .-8
		"17fffffe":          -8, // its second half alone
		"fd400420 17fffffe": -4, // ldr d0, [x1, #8]
		"f9000bfe 17fffffe": 0,  // str x30, [sp, #16]
		"f900043e 17fffffe": 0,  // str x30, [x1, #8]
		"f940043e 17fffffe": 0,  // ldr x30, [x1, #8] changes a register that unwind rules speak of
		"f8410421 17fffffe": 0,  // ldr x1, [x1], #16
		"910043ff 17fffffe": 0,  // add sp, sp, #16
		"f9400421 d65f03c0": 0,  // ret
		"f9400421":          0,
		"a9400821 17fffffe": 0, // ldp: no erratum concerns it
	} {
		if by, ok := CPU.Detour(bytes(words)); by != want && ok || ok != (want != 0) {
			t.Errorf("%s goes back by %d %v, want %d", words, by, ok, want)
		}
	}
	for words, want := range map[string]int{
		"a9bf7bfd 910003fd":                   8,  // stp x29, x30, [sp, #-16]!; mov x29, sp
		"d503233f a9bf7bfd 910003fd":          12, // paciasp first
		"d50320ff d503233f a9bf7bfd 910003fd": 16, // xpaclri, paciasp
		"d50320ff d503231f a9bf7bfd 910003fd": 16, // xpaclri, paciaz
		"dac103be a9bf7bfd 910003fd":          12, // pacia x30, x29
		"a9bf7bfd 910003fc":                   0,
		"d503233f":                            0,
	} {
		if got := CPU.Enters(bytes(words)); got != want {
			t.Errorf("%s enters in %d bytes, want %d", words, got, want)
		}
	}
	for words, want := range map[string]bool{"94000400": true, "d63f0100": true, "d73f0901": true, "d63f08ff": true,
		"d61f0100": false, "14000400": false} {
		if CPU.EndsInCall(bytes(words)) != want {
			t.Errorf("%s: %v", words, !want)
		}
	}
	// ldr x9, [x29, #-8]; mov sp, x29; ldp x29, x30, [sp], #16; and sp, x9, #-16; ret; nop
	gone := bytes("f85f83a9 910003bf a8c17bfd 927ced3f d65f03c0 d503201f")

	for off, want := range []bool{false, false, true, true, true, false} {
		if CPU.AfterLeave(gone, uint64(4*off)) != want {
			t.Errorf("after leave at %d: %v", off, !want)
		}
	}
}

// TestPops: the code behind the call in a stub of C2 (JDK 8, _rethrow_Java) that has pushed a crumb, and behind calls
// in other stubs.
func TestPops(t *testing.T) {
	for code, want := range map[string]uint64{
		"910043ff aa0003eb": 16, // add sp, sp, #16; mov x11, x0
		"910083ff d65f03c0": 0,  // add sp, sp, #32; ret
		"a8c17bfd d65f03c0": 0,  // ldp x29, x30, [sp], #16; ret
	} {
		b, _ := assemble(t, "^"+code)
		if got := CPU.Pops(b); got != want {
			t.Errorf("%s: %d, not %d", code, got, want)
		}
	}
	if got := CPU.Pops(nil); got != 0 {
		t.Errorf("no code: %d", got)
	}
}

// TestCallTarget: calls that say where they lead, forwards and back.
func TestCallTarget(t *testing.T) {
	for words, want := range map[string]uint64{"94000400": 0x401000, "97fffffe": 0x3ffff8, "d63f0100": 0, "14000400": 0} {
		code, _ := assemble(t, words)
		if got, ok := CPU.CallTarget(code, 0x400004); got != want || ok != (want != 0) {
			t.Errorf("%s leads to %#x %v, want %#x", words, got, ok, want)
		}
	}
}
