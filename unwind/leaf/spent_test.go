package leaf

import (
	"encoding/hex"
	"testing"

	"goprof/arch/amd64"
)

// TestSpentAt: if an instruction is slow and holds up interrupts, it gets the time of a thread that is found right
// behind it.
func TestSpentAt(t *testing.T) {
	// 0 lock xadd, 1 mov, 2 lock add (the fence of a volatile store), 3 dec, which ends a loop of itself, 4 jne,
	// 5 xadd without lock, 6 jmp to the ret, 7 nop, 8 lock cmpxchg, 9 jmp to the ret, 10 nop, 11 ret
	code, err := hex.DecodeString("f0480fc14310" + "4889d8" + "f0834424c000" + "ffc8" + "75fc" + "480fc14310" +
		"eb09" + "90" + "f0490fb118" + "eb01" + "90" + "c3")
	if err != nil {
		t.Fatal(err)
	}
	m := &codeMap{cpu: amd64.CPU}
	m.begin(code, 0, func(func(uint64) bool) {})
	m.place(0) // decodes the code
	for _, r := range []struct {
		name    string
		n, want int32
	}{
		{"in it", 0, 0},
		{"right behind", 1, 0},
		{"before the next one", 2, 2},
		{"behind a fence, where a loop begins", 3, 3},
		{"behind what is no slow instruction", 4, 4},
		{"behind a sum of one CPU: a jump goes with what follows", 6, 11},
		{"behind an exchange, at a jump", 9, 8},
		{"no instruction", notInCode, notInCode},
	} {
		for _, level := range []uint8{1, levelC2} {
			want := r.want
			if level != levelC2 && r.n == 6 {
				want = 6 // jumps in C1's code count for themselves
			}
			if got := m.spentAt(r.n, level); got != want {
				t.Errorf("%s, level %d: %d, not %d", r.name, level, got, want)
			}
		}
	}
}
