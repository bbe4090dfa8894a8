package arm64

import "testing"

// TestIntrinsic: the code of JDK 17 for String.compareTo, cut short in the middle, and code that looks like it.
func TestIntrinsic(t *testing.T) {
	for _, r := range []struct {
		name, code, want string
		end              uint32
	}{
		// mov w2, w7; subs w0, w2, w4; csel w4, w2, w4, le; cmp w4, 8; b.le; ldr x10, [x1]; cbz x4, end; sub x0, x10, x2
		{"two strings of bytes", "2a0703e2 ^6b040040 1a84d044 7100209f 5400050d f940002a b4000044 cb020140 37f80080",
			"string_compare", 32},
		{"two strings of chars", "^13017c42 13017c84 6b040040 1a84d044 34000044 d503201f d65f03c0", "string_compare", 24},
		{"behind another piece", "6b040040 1a84d044 34000044 13017c42 ^6b040040 1a84d044 34000044 d503201f d503201f",
			"string_compare", 32},
		{"two halves are the most", "13017c42 ^13017c42 13017c84 6b040040 1a84d044 34000044 d503201f d503201f",
			"string_compare", 28},
		{"another difference", "^6b050040 1a84d044 b4000044 d503201f d65f03c0", "", 0},
		{"another choice", "^6b040040 1a84c044 b4000044 d503201f d65f03c0", "", 0},
		{"another register is zero", "^6b040040 1a84d044 b4000045 d503201f d65f03c0", "", 0},
		{"no way to the end", "^6b040040 1a84d044 b5000044 d503201f d65f03c0", "", 0},
		{"a way back", "^6b040040 1a84d044 b4ffffe4 d503201f d65f03c0", "", 0},
		{"a way out of the code", "^6b040040 1a84d044 b4000804 d503201f d65f03c0", "", 0},
		{"another begins before the end", "^6b040040 1a84d044 6b040040 1a84d044 b4000044 d503201f d65f03c0", "", 0},
		{"the code ends", "^6b040040 1a84d044", "", 0},
	} {
		code, pc := assemble(t, r.code)
		name, end := "", uint32(0)
		CPU.Intrinsics(code, func(n string, begin, e uint32) bool {
			if uint64(begin) == pc {
				name, end = n, e
			}
			return true
		})
		if name != r.want || end != r.end {
			t.Errorf("%s: %q to %d, not %q to %d", r.name, name, end, r.want, r.end)
		}
	}
	x86 := []byte{0x8b, 0xc1, 0x2b, 0xca, 0x51, 0x0f, 0x4e, 0xd0, 0x59}
	CPU.Intrinsics(x86, func(name string, _, _ uint32) bool { t.Errorf("%q", name); return false })
	CPU.Intrinsics(nil, func(name string, _, _ uint32) bool { t.Errorf("%q in no code", name); return false })
}
