//go:build linux

package session

import (
	"errors"
	"strings"
	"testing"
)

// TestKernelNames: an address has the name of the function in which it lies. Outside of functions it has no name.
func TestKernelNames(t *testing.T) {
	k, err := readKernelNames(strings.NewReader("ffffffff81000000 T _stext\nffffffff81000100 t do_page\n" +
		"ffffffff81000200 d data\nffffffffc0000000 t of_module\t[module]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[uint64]string{
		0xffffffff80ffffff: unknownKernel, 0xffffffff81000000: "_stext", 0xffffffff810000ff: "_stext",
		0xffffffff81000150: "do_page", 0xffffffffc0000010: "of_module",
		0xffffffffa0000000: unknownKernel, 0xffffffffd0000000: unknownKernel,
	} {
		if got := k.at(addr).Name; got != want {
			t.Errorf("%#x: %s, not %s", addr, got, want)
		}
	}
	if _, err := readKernelNames(strings.NewReader("0000000000000000 T _stext\n")); !errors.Is(err, ErrKernelHidden) {
		t.Errorf("hidden addresses: %v", err)
	}
}
