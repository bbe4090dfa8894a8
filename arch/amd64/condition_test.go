package amd64

import (
	"testing"

	"goprof/arch"
)

// TestCondition: what a branch compares. The caret marks the branch. The comparison stands before it.
func TestCondition(t *testing.T) {
	for _, r := range []struct {
		name, code string
		want       arch.Condition
		unknown    bool
	}{
		{name: "a register is zero", code: "4585d2 ^7410", want: arch.Condition{Is: arch.Equal, Constant: true}},
		{name: "a reference is not", code: "4885c0 ^0f8510000000", want: arch.Condition{Is: arch.NotEqual, Wide: true,
			Constant: true}},
		{name: "a register is negative", code: "85db ^7810", want: arch.Condition{Is: arch.Less, Constant: true}},
		{name: "two registers", code: "443bda ^7d10", want: arch.Condition{Is: arch.NotLess}},
		{name: "two, the other way around", code: "4439d9 ^7e10", want: arch.Condition{Is: arch.NotGreater}},
		{name: "a register and memory", code: "3b4314 ^7f10", want: arch.Condition{Is: arch.Greater, InMemory: true}},
		{name: "a small constant", code: "83f97f ^7e10", want: arch.Condition{Is: arch.NotGreater, Constant: true,
			Value: 127}},
		{name: "a negative one", code: "4983f980 ^0f8c10000000", want: arch.Condition{Is: arch.Less, Wide: true,
			Constant: true, Value: -128}},
		{name: "a large one", code: "4181fb50620001 ^7410", want: arch.Condition{Is: arch.Equal, Constant: true,
			Value: 0x1006250}},
		{name: "rax and a constant", code: "3d10ec0000 ^7510", want: arch.Condition{Is: arch.NotEqual, Constant: true,
			Value: 0xec10}},
		{name: "memory and a constant", code: "837b0c00 ^7410", want: arch.Condition{Is: arch.Equal, Constant: true,
			InMemory: true}},
		{name: "without signs", code: "443bda ^7310", unknown: true},
		{name: "the sign of a difference", code: "443bda ^7810", unknown: true},
		{name: "an overflow", code: "443bda ^7010", unknown: true},
		{name: "bits", code: "85d8 ^7410", unknown: true},
		{name: "a byte", code: "807b0c00 ^7410", unknown: true},
		{name: "16 bits", code: "6683f97f ^7410", unknown: true},
		{name: "doubles", code: "c5f92ec1 ^7410", unknown: true},
		{name: "a sum", code: "83c101 ^7410", unknown: true},
		{name: "no branch", code: "4585d2 ^8bc3", unknown: true},
		{name: "a loop that counts", code: "4585d2 ^e010", unknown: true},
	} {
		code, branch := assemble(t, r.code)
		got, ok := CPU.Condition(code, 0, uint32(branch))
		if ok == r.unknown || ok && got != r.want {
			t.Errorf("%s: %+v, %v", r.name, got, ok)
		}
	}
	if _, ok := CPU.Condition([]byte{0x85, 0xc0}, 0, 2); ok {
		t.Error("a branch behind the code")
	}
}
