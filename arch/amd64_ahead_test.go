package arch

import (
	"strings"
	"testing"
)

// The bars mark where the way may end; the first of them that is reached is the answer.
func TestAheadAMD64(t *testing.T) {
	const none = -1
	for _, r := range []struct {
		name, code string
		want       int // which bar
	}{
		{"straight on", "^90 90 |90 |90", 0},
		{"not where it begins", "^|90 90 |c3", 1},
		{"past a call", "^e800010000 |90", 0},
		{"over a branch that is laid out elsewhere", "^7403 90 |90 c3 |90", 0},
		{"round the loop, not out of it", "|90 ^90 7ffc |90", 0},
		{"round a loop that has none, then out of it", "90 ^90 7ffc |90", 0},
		{"along a jump, not what stands behind it", "^eb01 |90 |90", 1},
		{"a jump back", "|90 ^ebfd |90", 0},
		{"the code returns", "^90 c3 |90", none},
		{"the code returns, a branch does not", "^7402 90 c3 |90", none},
		{"an end that says nothing, a branch goes on", "^7402 0f0b |90", 0},
		{"a switch", "^ffe0 |90", none},
		{"a jump out of the code", "^e900100000 |90", none},
		{"an endless loop", "^ebfe |90", none},
		{"off the end", "^90 90", none},
		{"an instruction that nobody knows", "^d5084889d8 |90", none},
		{"vector instructions", "^c5f877 62f17c4828c1 |90", 0},
	} {
		var marks []uint64
		var hex string
		at := uint64(0)
		for i, part := range strings.Split(r.code, "|") {
			if i > 0 {
				marks = append(marks, at)
			}
			code, _ := assemble(t, part)
			at += uint64(len(code))
			hex += part
		}
		code, pc := assemble(t, hex)
		const base = 0x7f0000001000
		got, ok := new(amd64Tracer).Ahead(code, base, base+pc, func(pc uint64) bool {
			for _, m := range marks {
				if pc == base+m {
					return true
				}
			}
			return false
		})
		if ok != (r.want != none) || ok && got != base+marks[r.want] {
			t.Errorf("%s: %#x %v", r.name, got, ok)
		}
	}
}
