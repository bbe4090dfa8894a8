package leaf

import (
	"fmt"
	"strings"
	"testing"

	"goprof/arch/amd64"
)

func withoutSpaces(s string) string { return strings.ReplaceAll(s, " ", "") }

// TestStackOf: the opcodes at the edges of the table.
func TestStackOf(t *testing.T) {
	for _, r := range []struct {
		op   uint8
		want string
	}{{0, "0 0 true"}, {1, "0 1 true"}, {0x2d, "0 1 true"}, {0x2e, "2 1 true"}, {0x36, "1 0 true"}, {0x4e, "1 0 true"},
		{0x4f, "3 0 true"}, {0x57, "0 0 false"}, {0x5f, "0 0 false"}, {0x60, "2 1 true"}, {0x74, "1 1 true"},
		{0x78, "2 1 true"}, {0x84, "0 0 true"}, {0x85, "1 1 true"}, {0x94, "2 1 true"}, {0x99, "1 0 true"},
		{0x9f, "2 0 true"}, {0xa7, "0 0 false"}, {0xaa, "1 0 true"}, {0xac, "1 0 true"}, {0xb1, "0 0 false"},
		{0xb2, "0 1 true"}, {0xb3, "1 0 true"}, {0xb4, "1 1 true"}, {0xb5, "2 0 true"}, {0xb6, "0 0 false"},
		{0xba, "0 0 false"}, {0xbb, "0 1 true"}, {0xbc, "1 1 true"}, {0xbe, "1 1 true"}, {0xbf, "0 0 false"},
		{0xc0, "1 1 true"}, {0xc1, "1 1 true"}, {0xc2, "1 0 true"}, {0xc4, "0 0 false"}, {0xc5, "0 0 false"},
		{0xc6, "1 0 true"}, {0xc8, "0 0 false"}, {0xff, "0 0 false"}} {
		takes, puts, ok := stackOf(r.op)
		if got := fmt.Sprint(takes, puts, ok); got != r.want {
			t.Errorf("%#x: %s, not %s", r.op, got, r.want)
		}
	}
}

// TestTaker: the first instruction that reads what a load writes.
func TestTaker(t *testing.T) {
	for _, r := range []struct {
		name, code string
		want       int32
	}{
		{"right behind", "8b4314 85c0", 1},
		{"behind others", "8b4314 ffc1 8b5310 85c0", 3},
		{"as an address", "8b4314 8b4810", 1},
		{"written again", "8b4314 8b4318 85c0", notInCode},
		{"too far", "8b4314 ffc1 ffc1 ffc1 ffc1 ffc1 ffc1 85c0", notInCode},
		{"behind a branch", "8b4314 7c02 85c0 c3", notInCode},
		{"behind what is not known", "8b4314 4190 85c0", notInCode},
	} {
		m := &codeMap{cpu: amd64.CPU}
		m.begin(unhex(t, r.code), 0, func(func(uint64) bool) {})
		if got := m.taker(m.place(0)); got != r.want {
			t.Errorf("%s: %d, not %d", r.name, got, r.want)
		}
	}
}
