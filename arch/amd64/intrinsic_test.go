package amd64

import "testing"

// TestIntrinsic: the code of JDK 25 for String.compareTo, cut short in the middle, and code that looks like it.
func TestIntrinsic(t *testing.T) {
	for _, r := range []struct {
		name, code, want string
		end              uint32
	}{
		{"two strings of one coder", "488d7610 ^8bc12bca510f4ed085d2 7405 2bc1 58 eb01 59 8bd8", "string_compare", 22},
		{"of two coders", "^8bc22bd1520f4ec885c9 7405 2bc2 58 eb01 5a 8bd8", "string_compare", 18},
		{"what pops is an operand", "^8bc12bca510f4ed0 8b4159 59", "string_compare", 12},
		{"another difference", "^8bc12bcb510f4ed0 59", "", 0},
		{"no end", "^8bc12bca510f4ed0 58 c3", "", 0},
		{"another begins before the end", "^8bc12bca510f4ed0 8bc12bca510f4ed0 59", "", 0},
		{"the end is another register's", "^8bc22bd1520f4ec8 59", "", 0},
		{"it begins elsewhere", "^90 8bc12bca510f4ed0 59", "", 0},
		{"the code ends", "^8bc12bca", "", 0},
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
	CPU.Intrinsics(nil, func(name string, _, _ uint32) bool { t.Errorf("%q in no code", name); return false })
}
