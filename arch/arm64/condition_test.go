package arm64

import (
	"testing"

	"goprof/arch"
)

// TestCondition: what a branch compares. The caret marks the branch. The comparison, if there is one, stands before it.
func TestCondition(t *testing.T) {
	for _, r := range []struct {
		name, code string
		want       arch.Condition
		unknown    bool
	}{
		{name: "two registers", code: "6b02003f ^5400008a", want: arch.Condition{Is: arch.NotLess}}, // cmp w1, w2; b.ge
		{name: "two of 64 bits", code: "eb02003f ^54000080", want: arch.Condition{Is: arch.Equal, Wide: true}},
		{name: "less", code: "6b02003f ^5400008b", want: arch.Condition{Is: arch.Less}},
		{name: "greater", code: "6b02003f ^5400008c", want: arch.Condition{Is: arch.Greater}},
		{name: "not greater", code: "6b02003f ^5400008d", want: arch.Condition{Is: arch.NotGreater}},
		{name: "a constant", code: "7101fc3f ^54000081", want: arch.Condition{Is: arch.NotEqual, Constant: true,
			Value: 127}}, // cmp w1, 127; b.ne
		{name: "a negative one", code: "b102003f ^5400008b", want: arch.Condition{Is: arch.Less, Wide: true,
			Constant: true, Value: -128}}, // cmn x1, 128; b.lt
		{name: "a large one", code: "7144003f ^54000080", want: arch.Condition{Is: arch.Equal, Constant: true,
			Value: 0x100000}}, // cmp w1, 0x100, lsl 12; b.eq
		{name: "the sign, of zero", code: "7100003f ^54000084", want: arch.Condition{Is: arch.Less, Constant: true}},
		{name: "no sign, of zero", code: "7100003f ^54000085", want: arch.Condition{Is: arch.NotLess, Constant: true}},
		{name: "the sign of a difference", code: "7101fc3f ^54000084", unknown: true},
		{name: "without signs", code: "6b02003f ^54000083", unknown: true},
		{name: "a register that is shifted", code: "6b02043f ^54000080", unknown: true},
		{name: "bits", code: "f27d003f ^54000080", unknown: true},
		{name: "a jump", code: "6b02003f ^14000004", unknown: true},
		{name: "null in a register", code: "aa1f03e2 eb02003f ^54000080", want: arch.Condition{Is: arch.Equal, Wide: true,
			Constant: true}}, // mov x2, xzr; cmp x1, x2; b.eq
		{name: "a constant in a register", code: "52802ee2 6b02003f ^5400008b", want: arch.Condition{Is: arch.Less,
			Constant: true, Value: 375}}, // mov w2, 375; cmp w1, w2; b.lt
		{name: "a negative one in a register", code: "12802ee2 6b02003f ^5400008b", want: arch.Condition{Is: arch.Less,
			Constant: true, Value: -376}}, // mov w2, -376; cmp w1, w2; b.lt
		{name: "in another register", code: "52802ee3 6b02003f ^5400008b", want: arch.Condition{Is: arch.Less}},
		{name: "a part of a constant", code: "f2a00022 eb02003f ^54000080", want: arch.Condition{Is: arch.Equal,
			Wide: true}}, // movk x2, 1, lsl 16; cmp x1, x2; b.eq
		{name: "zero", code: "^34000081", want: arch.Condition{Is: arch.Equal, Constant: true}}, // cbz w1
		{name: "a reference that is not null", code: "^b5000081", want: arch.Condition{Is: arch.NotEqual, Wide: true,
			Constant: true}}, // cbnz x1
		{name: "not negative", code: "^36f80081", want: arch.Condition{Is: arch.NotLess, Constant: true}}, // tbz w1, 31
		{name: "negative, of 64 bits", code: "^b7f80081", want: arch.Condition{Is: arch.Less, Wide: true,
			Constant: true}}, // tbnz x1, 63
		{name: "a bit", code: "^36180081", unknown: true}, // tbz w1, 3
		{name: "the highest bit but 32", code: "^b6000081", unknown: true},
	} {
		code, branch := assemble(t, r.code)
		got, ok := CPU.Condition(code, uint32(max(int(branch)-4, 0)), uint32(branch))
		if ok == r.unknown || ok && got != r.want {
			t.Errorf("%s: %+v, %v", r.name, got, ok)
		}
	}
	if _, ok := CPU.Condition(make([]byte, 6), 0, 4); ok {
		t.Error("a branch behind the code")
	}
}
