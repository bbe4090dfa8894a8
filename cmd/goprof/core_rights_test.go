//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goprof/arch"
	"goprof/cmd/goprof/exit"
)

// TestCoreOfOthersFiles: a core names a file below a folder that only another user may enter. goprof does not read
// the file for that reason, also as root. The message names the folder for --debug-dir, and with that root reads the
// file.
func TestCoreOfOthersFiles(t *testing.T) {
	if !changesAllThreads() {
		t.Skip("built with cgo: Go cannot change all OS threads then")
	}
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	lib := filepath.Join(home, "lib", "libjvm.so")
	put(t, lib, "not that build")
	if os.Geteuid() != 0 || os.Chown(home, 1000, 1000) != nil || os.Chmod(home, 0o700) != nil {
		t.Skip("needs root, and a folder of another user")
	}
	core := filepath.Join(dir, "core")
	if err := os.WriteFile(core, coreThatNames(lib), 0o600); err != nil {
		t.Fatal(err)
	}
	ends := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "goprof", append([]string{"dump", "--core", core}, args...)...)
		out, _ := cmd.CombinedOutput()
		if code := exit.Code(cmd.ProcessState.ExitCode()); code != exit.BadCore {
			t.Errorf("exit code %d", code)
		}
		return string(out)
	}
	cure := "--debug-dir " + filepath.Dir(lib)
	if said := ends(); !strings.Contains(said, lib+": permission denied") || !strings.Contains(said, cure) {
		t.Errorf("it does not tell %q:\n%s", cure, said)
	}
	if said := ends("--debug-dir", filepath.Dir(lib)); !strings.Contains(said, "nothing in the core proves") ||
		strings.Contains(said, "permission denied") {
		t.Errorf("with %s:\n%s", cure, said)
	}
}

// coreThatNames is the smallest core file of a process with a mapped file (include/uapi/linux/elfcore.h,
// fs/coredump.c: fill_files_note).
func coreThatNames(file string) []byte {
	var notes, b bytes.Buffer
	note := func(kind uint32, desc []byte) {
		desc = append(desc, make([]byte, -len(desc)&3)...)
		binary.Write(&notes, binary.LittleEndian, []uint32{5, uint32(len(desc)), kind})
		notes.WriteString("CORE\x00\x00\x00\x00")
		notes.Write(desc)
	}
	note(1, make([]byte, arch.CoreRegs+27*8+8)) // NT_PRSTATUS of x86-64
	var table bytes.Buffer
	binary.Write(&table, binary.LittleEndian, []uint64{1, 4096, 0x10000, 0x11000, 0})
	note(0x46494c45, append(table.Bytes(), file+"\x00"...)) // NT_FILE
	h := elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Phentsize: 56,
		Phnum: 1, Ehsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	binary.Write(&b, binary.LittleEndian, h)
	binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: 64 + 56,
		Filesz: uint64(notes.Len())})
	return append(b.Bytes(), notes.Bytes()...)
}
