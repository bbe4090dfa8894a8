package amd64

import (
	"testing"

	"goprof/arch"
)

func TestTrampoline(t *testing.T) {
	var r arch.Regs
	r[rip], r[r10] = 0x800000000, 0x7f0b5c001240
	far := []byte{0x49, 0xba, 0x40, 0x12, 0x00, 0x5c, 0x0b, 0x7f, 0, 0, 0x41, 0xff, 0xe2}
	for _, c := range []struct {
		name string
		code []byte
		want uint64 // 0: no trampoline
	}{
		{"far", far, 0x7f0b5c001240},
		{"far, half done", far[10:], 0x7f0b5c001240},
		{"near", []byte{0xe9, 0x0b, 0x01, 0, 0}, 0x800000110},
		{"near, backwards", []byte{0xe9, 0xfb, 0xff, 0xff, 0xff}, 0x800000000},
		{"far, cut off", far[:12], 0},
		{"another register", []byte{0x41, 0xff, 0xe3}, 0},
		{"a call", []byte{0xe8, 0, 0, 0, 0}, 0},
		{"nothing", nil, 0},
	} {
		got, ok := CPU.Trampoline(c.code, &r)
		if ok != (c.want != 0) || got != c.want {
			t.Errorf("%s: %#x, %v", c.name, got, ok)
		}
	}
}

func TestLinkerStub(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
		want bool
	}{
		{"an entry", []byte{0xff, 0x25, 0x3a, 0x2f, 0, 0}, true},
		{"with endbr64 and bnd", []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x3a, 0x2f, 0, 0}, true},
		{"not bound yet", []byte{0x68, 1, 0, 0, 0, 0xe9, 0xd0, 0xff, 0xff, 0xff}, true},
		{"not bound yet, with endbr64 and bnd",
			[]byte{0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xf2, 0xe9, 0xd0, 0xff, 0xff, 0xff}, true},
		{"the push is done", []byte{0xe9, 0xd0, 0xff, 0xff, 0xff}, false},
		{"a push, no jump", []byte{0x68, 1, 0, 0, 0, 0xe8, 0xd0, 0xff, 0xff, 0xff}, false},
		{"a call", []byte{0xff, 0x15, 0x3a, 0x2f, 0, 0}, false},
		{"a jump through a table", []byte{0xff, 0x24, 0xc5, 0, 0, 0, 0}, false},
		{"cut off", []byte{0xff, 0x25, 0x3a}, false},
		{"nothing", nil, false},
	} {
		if got := CPU.LinkerStub(c.code); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
