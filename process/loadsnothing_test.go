package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// TestLoadsNothing: a program that loads no library has no loader and no dynamic section, and is linked at a fixed
// address. The loader itself has no loader, either.
func TestLoadsNothing(t *testing.T) {
	for _, c := range []struct {
		what  string
		typ   elf.Type
		progs []elf.ProgType
		want  bool
	}{
		{"a program of Go", elf.ET_EXEC, []elf.ProgType{elf.PT_PHDR, elf.PT_NOTE, elf.PT_LOAD, elf.PT_LOAD}, true},
		{"java", elf.ET_DYN, []elf.ProgType{elf.PT_PHDR, elf.PT_INTERP, elf.PT_LOAD, elf.PT_DYNAMIC}, false},
		{"java with a fixed place", elf.ET_EXEC, []elf.ProgType{elf.PT_INTERP, elf.PT_LOAD, elf.PT_DYNAMIC}, false},
		{"ld.so", elf.ET_DYN, []elf.ProgType{elf.PT_LOAD, elf.PT_DYNAMIC}, false},
		{"a loader with a fixed place", elf.ET_EXEC, []elf.ProgType{elf.PT_LOAD, elf.PT_DYNAMIC}, false},
	} {
		h := elf.Header64{Type: uint16(c.typ), Machine: uint16(elf.EM_X86_64), Phoff: 64, Phentsize: 56,
			Phnum: uint16(len(c.progs))}
		copy(h.Ident[:], elf.ELFMAG)
		h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
		var b bytes.Buffer
		binary.Write(&b, binary.LittleEndian, &h)
		for _, p := range c.progs {
			binary.Write(&b, binary.LittleEndian, &elf.Prog64{Type: uint32(p)})
		}
		if got := LoadsNothing(bytes.NewReader(b.Bytes()), int64(b.Len())); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if LoadsNothing(bytes.NewReader([]byte("#!/bin/sh\n")), 10) {
		t.Error("a script")
	}
}
