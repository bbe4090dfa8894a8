package leaf

import (
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
)

// TestNotedWith: with which other instruction C1 notes an instruction.
func TestNotedWith(t *testing.T) {
	f := &Finder{vm: emptyVM(t)} // no constant is the address of a profile
	for _, r := range []struct {
		name, code string
		cpu        *arch.CPU
		want       []int32
	}{
		// mov eax, [rsi+0x30]; shl rax, 3; mov eax, [rax+0x24]
		{"a reference", "8b4630 48c1e003 8b4024", amd64.CPU, []int32{0, 0, 2}},
		// inc eax; shl rax, 3; ret
		{"a shift of something else", "ffc0 48c1e003 c3", amd64.CPU, []int32{0, 1, 2}},
		// mov [rsp+0xd0], rsi; mov rdx, rbx; movabs rax, 1; nop; call
		{"what a call wants", "4889b424d0000000 4889da 48b80100000000000000 90 e800000000", amd64.CPU,
			[]int32{4, 4, 4, 4, 4}},
		// mov eax, 1; mov rsi, rdi; xor rsi, rdx
		{"a constant of 32 bits", "b801000000 4889fe 4831d6", amd64.CPU, []int32{0, 2, 2}},
		// mov rdx, rbx; mov rsi, rdi; inc eax; je to the second: other code leads there, too
		{"a join", "4889da 4889fe ffc0 74f9", amd64.CPU, []int32{0, 2, 2, 3}},
		// movabs rax, 1; add rsp, 48; pop rbp; ret
		{"what is returned", "48b80100000000000000 4883c430 5d c3", amd64.CPU, []int32{0, 1, 2, 3}},
		// mov rdx, rbx; jmp; nop
		{"a jump", "4889da eb00 90", amd64.CPU, []int32{1, 1, 2}},
		// ldr w0, [x1, 16]; lsl x0, x0, 3; mov x2, x0; ldr w3, [x2, 12]
		{"a reference on arm64", "201040b9 00f07dd3 e20300aa 430c40b9", arm64.CPU, []int32{0, 0, 3, 3}},
	} {
		m := &codeMap{cpu: r.cpu}
		m.begin(unhex(t, r.code), 0, func(func(uint64) bool) {})
		m.place(0)
		for n, want := range r.want {
			if got := questionIn(f, nil, m).notedWith(int32(n)); got != want {
				t.Errorf("%s, instruction %d: %d", r.name, n, got)
			}
		}
		if got := questionIn(f, nil, m).notedWith(notInCode); got != notInCode {
			t.Errorf("%s: what is no instruction is %d", r.name, got)
		}
	}
}

// TestNotedOnArm: an address in three instructions is noted with the call behind it, and what makes an address of a
// class with the load before it.
func TestNotedOnArm(t *testing.T) {
	u := newMadeUp(t)
	m := &codeMap{cpu: arm64.CPU}
	// mov x0, x1; mov x2, address: three instructions; bl; ldr w3, [x2, 8]; movk x3, 32, lsl 32; ldr w4, [x2, 12];
	// lsl x4, x4, 3
	m.begin(unhex(t, "e00301aa 02cf8ad2 8246a2f2 02e0eff2 00000094 430840b9 0304c0f2 440c40b9 84f07dd3"), 0,
		func(func(uint64) bool) {})
	m.place(0)
	for n, want := range []int32{4, 4, 4, 4, 4, 5, 5, 7, 7} {
		if at := questionIn(u.f, nil, m).notedWith(int32(n)); at != want {
			t.Errorf("instruction %d is noted with %d, not %d", n, at, want)
		}
	}
}
