//go:build linux

package oracle

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"goprof/testdata/host"
)

// maxLies is how much memory goprof may take, in KB, whatever the files of its targets say of themselves: the budget of
// package process (256 MB), and what every run takes.
const maxLies = 400_000

// TestLyingTables: libraries whose tables of symbols are as large as goprof reads any. One process has one of them,
// then five are looked at side by side.
func TestLyingTables(t *testing.T) {
	t.Parallel()
	goprof := buildGoprof(t)
	program := filepath.Join(t.TempDir(), "lure")
	tool(t, "gcc", "-static", "-pthread", "-o", program, filepath.Join("..", "..", "testdata", "native", "lure.c"))
	var pids []string
	for range 5 {
		library := filepath.Join(t.TempDir(), "libjvm.so")
		lyingLibrary(t, library, 120<<20)
		pids = append(pids, strconv.Itoa(host.StartReady(t, exec.Command(program, "/", library))))
	}
	for _, args := range [][]string{{"dump", "--pid", pids[0]}, {"doctor", "--pid", pids[0]}, {"list"}} {
		ended, cpu, kb := runMeasured(t, append([]string{goprof}, args...)...)
		t.Logf("%s: %d MB, %v", args[0], kb>>10, cpu)
		if kb == 0 || kb > maxLies {
			t.Errorf("%s took %d MB\n%s%s", args[0], kb>>10, ended.out, ended.err)
		}
	}
}

// lyingLibrary makes a library with a table of symbols and one of names that are that large. It is a file of holes.
func lyingLibrary(t *testing.T, path string, size uint64) {
	t.Helper()
	const page = 4096
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_SYMTAB), Off: page, Size: size / 24 * 24, Link: 2, Entsize: 24},
		{Name: 9, Type: uint32(elf.SHT_STRTAB), Off: page + size, Size: size},
		{Name: 17, Type: uint32(elf.SHT_STRTAB), Off: 1024, Size: 64},
	}
	header := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64,
		Shoff: 512, Ehsize: 64,
		Phentsize: 56, Phnum: 1, Shentsize: 64, Shnum: uint16(len(sections)), Shstrndx: 3}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	load := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Filesz: page, Memsz: page,
		Align: page}
	var b bytes.Buffer
	for _, part := range []any{header, load} {
		binary.Write(&b, binary.LittleEndian, part)
	}
	b.Write(make([]byte, 512-b.Len()))
	binary.Write(&b, binary.LittleEndian, sections)
	b.Write(make([]byte, 1024-b.Len()))
	b.WriteString("\x00.symtab\x00.strtab\x00.shstrtab\x00")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(page+2*size)); err != nil {
		t.Fatal(err)
	}
}
