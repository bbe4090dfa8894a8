package amd64

import "testing"

// TestIntrinsic: the code of JDK 25 for String.compareTo, cut short in the middle, that for divisions, and code that
// looks like it.
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
		{"a division", "8bd8 ^3d00000080 7507 33d2 83ffff 7403 99 f7ff 8bca", "int division", 19},
		{"another encoding, and register", "^81f800000080 7508 33d2 4183f9ff 7404 99 41f7f9", "int division", 20},
		{"a division of 64 bits", "^48ba0000000000000080 483bc2 7508 33d2 4883f9ff 7405 4899 48f7f9", "long division", 28},
		{"another encoding of it", "^48ba0000000000000080 4839d0 7508 33d2 4883f9ff 7405 4899 48f7f9", "long division", 28},
		{"64 bits behind a comparison of 32", "^3d00000080 7507 33d2 83ffff 7403 4899 48f7ff", "", 0},
		{"another constant", "^3d00000040 7507 33d2 83ffff 7403 99 f7ff", "", 0},
		{"no division", "^3d00000080 7507 33d2 83ffff 7403 99 f7e7", "", 0},
		{"compared with another number", "^3d00000080 7507 33d2 83fffe 7403 99 f7ff", "", 0},
		{"the division's end is missing", "^3d00000080 7507 33d2 83ffff", "", 0},
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
