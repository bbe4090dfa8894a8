package leaf

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
)

// TestInBarrier: barriers as C2 makes them. The brackets contain what inBarrier must find.
func TestInBarrier(t *testing.T) {
	for _, r := range []struct {
		name string
		cpu  *arch.CPU
		code string
	}{
		// cmp byte [r15+0x38], 0; jne; mov [r13], r9d; mov r8, r13; xor r10, r8; shr r10, 20; test r10, r10; je;
		// shr r8, 9; movabs rdi, table; add rdi, r8; cmp byte [rdi], 4; jne; mov r10d, ecx
		{"G1's, of 17", amd64.CPU, "90 [41807f3800 7511 45894d00 4d89e8 4d31c2 49c1ea14 4d85d2 741a 49c1e809" +
			" 48bf00a0b62aa57f0000 4c01c7 803f04 7500] 4189ca"},
		// ldrsb w10, [x28, 0x38]; cbnz; str w13, [x24, 20]; mov x11, x20; eor x11, x11, x10; lsr x13, x20, 3;
		// lsr x11, x11, 20; str w13, [x24, 20]; cbz x11; cbz x20; lsr x10, x10, 9; mov x11, table: three instructions;
		// add x0, x11, x10; ldrsb w10, [x0]; cmp w10, 4; b.ne; mov w1, w2
		{"G1's, of 17 on arm64", arm64.CPU, "1f2003d5 [8ae3c039 0a020035] 0d1700b9 [eb0314aa 6b010aca 8dfe43d3 6bfd54d3" +
			" 0d1700b9 0b0200b4 140200b4 4afd49d3 0b009ad2 4b4fa4f2 ab0ac0f2 60010a8b 0a00c039 5f110071 01020054] e103022a"},
		// str w11, [x10, 12]; lsr x9, x10, 9; mov x8, table; add x8, x8, x9; strb wzr, [x8]; mov w0, w1
		{"Parallel's on arm64", arm64.CPU, "4b0d00b9 [49fd49d3 08009ad2 484fa4f2 a80ac0f2 0801098b 1f010039] e003012a"},
		// lsr x1, x2, 9; mov x1, 0x550000; ldrb w1, [x1]
		{"a small table", arm64.CPU, "41fc49d3 a10aa0d2 21004039"},
		// mov r11, [rsp]; xor r11, rax; shr r11, 9; ret
		{"a hash", amd64.CPU, "4c8b1c24 4931c3 49c1eb09 c3"},
		// mov [r10+12], r11d; mov r9, r10; shr r9, 9; movabs r8, table; mov byte [r8+r9], r12b; mov eax, ecx
		{"Parallel's", amd64.CPU, "4589 5a0c 4d89d1 [49c1e909 49b800a0b62aa57f0000 47882408] 89c8"},
	} {
		text := strings.ReplaceAll(r.code, " ", "")
		code, err := hex.DecodeString(strings.NewReplacer("[", "", "]", "").Replace(text))
		if err != nil {
			t.Fatal(r.name, err)
		}
		m := codeMap{cpu: r.cpu}
		m.begin(code, 0, slices.Values([]uint64{}))
		in, at := false, 0
		for _, c := range text {
			switch c {
			case '[':
				in = true
			case ']':
				in = false
			default:
				if n := m.place(uint32(at / 2)); at%2 == 0 && n != notInCode && m.inBarrier(n) != in {
					t.Errorf("%s: at %d: %v", r.name, at/2, !in)
				}
				at++
			}
		}
	}
}

// TestLeavesAt: from the instruction that takes down the frame to the return.
func TestLeavesAt(t *testing.T) {
	code, err := hex.DecodeString("89c8" + // mov eax, ecx
		"4883c430" + "5d" + "493ba740030000" + "0f8757000000" + "c3" + // add rsp; pop rbp; cmp rsp, [r15+0x340]; ja; ret
		"59" + "c3" + "e800000000") // pop rcx; ret; call
	if err != nil {
		t.Fatal(err)
	}
	m := codeMap{cpu: amd64.CPU}
	m.begin(code, 0, slices.Values([]uint64{}))
	for at, want := range map[uint32]bool{0: false, 2: true, 6: true, 7: true, 14: true, 20: true, 21: false,
		22: false, 23: false} {
		if got := m.leavesAt(m.place(at)); got != want {
			t.Errorf("at %d: %v", at, got)
		}
	}
}
