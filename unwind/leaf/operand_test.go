package leaf

import (
	"fmt"
	"strings"
	"testing"

	"goprof/arch/amd64"
	"goprof/vmstructs"
)

func withoutSpaces(s string) string { return strings.ReplaceAll(s, " ", "") }

// TestOperandsOf: which bytecodes hand another one its values.
func TestOperandsOf(t *testing.T) {
	const local, add, get, static = 0x1a, vmstructs.OpIadd, vmstructs.OpGetfield, vmstructs.OpGetstatic
	const array, ifLess, ifZero, dup, invoke, put = vmstructs.OpIaload, 0xa1, opIfeq, 0x59, vmstructs.OpInvoke,
		vmstructs.OpPutfield
	for _, r := range []struct {
		name string
		ops  []uint8
		want string
	}{
		{"a field that is compared", []uint8{local, get, ifZero}, "[1]"},
		{"two of them", []uint8{local, get, local, get, ifLess}, "[3 1]"},
		{"a field and a sum", []uint8{local, get, local, local, add, ifLess}, "[4 1]"},
		{"a field of a field", []uint8{local, get, get}, "[1]"},
		{"an element", []uint8{local, get, local, local, add, array}, "[4 1]"},
		{"the result of an invoke", []uint8{local, invoke, ifZero}, "[1]"},
		{"below the result of an invoke", []uint8{local, get, local, invoke, ifLess}, "[3]"},
		{"a value twice", []uint8{local, get, dup, ifLess}, "[2]"},
		{"a static field", []uint8{static, get, ifZero}, "[1]"},
		{"what is stored", []uint8{local, local, get, put}, "[2 0]"},
		{"a jump before", []uint8{vmstructs.OpGoto, local, local, ifLess}, "[2 1]"},
		{"nothing before", []uint8{ifLess}, "[]"},
		{"a bytecode that does not tell", []uint8{local, invoke}, "[]"},
	} {
		var code []vmstructs.Bytecode
		for i, op := range r.ops {
			code = append(code, bytecode(int32(i), op))
		}
		if got := fmt.Sprint(operandsOf(code, len(code)-1)); got != r.want {
			t.Errorf("%s: %s, not %s", r.name, got, r.want)
		}
	}
	if got := operandsOf(nil, -1); got != nil {
		t.Errorf("of no bytecode: %v", got)
	}
}

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

// TestLoadForCheck: the field that a check compares is that of the method with the check, if the method itself loads it
// for the check's bytecode. The field is at 20.
func TestLoadForCheck(t *testing.T) {
	for _, r := range []struct {
		name string
		code string // a load, and the comparison of a check
		ops  []uint8
		want int32 // the bytecode behind that of the check
	}{
		{"the field", "8b4314 85c0", []uint8{vmstructs.OpGetfield}, -1},
		{"another field", "8b4318 85c0", []uint8{vmstructs.OpGetfield}, 0},
		{"a local variable", "8b4314 85c0", []uint8{vmstructs.OpGetfield, 0x1a}, 0},
		{"what an invoke returns", "8b4314 85c0", []uint8{vmstructs.OpInvoke}, 0},
		{"another register", "8b4314 85c9", []uint8{vmstructs.OpGetfield}, 0},
	} {
		u := newMadeUp(t)
		at := u.scopes(0)[0]
		var code []vmstructs.Bytecode
		for i, op := range r.ops {
			code = append(code, bytecode(at.BCI-int32(len(r.ops)-i), op))
		}
		u.f.bytecode[at.Method] = append(code, branch(at.BCI, 0xc6, 0))
		u.f.fields = map[invokeSite]int32{}
		for i := range code {
			u.f.fields[invokeSite{at.Method, code[i].BCI}] = 20
		}
		u.assemble(t, r.code+" 0f84>0 c3", trapCall, u.request(t, vmstructs.TrapNull))
		s := u.question().at(0).handsTo()
		switch {
		case r.want == 0 && s != nil:
			t.Errorf("%s: %+v", r.name, s[0])
		case r.want != 0 && (s == nil || s[0].Method != at.Method || s[0].BCI != at.BCI+r.want):
			t.Errorf("%s: %+v", r.name, s)
		}
	}
}
