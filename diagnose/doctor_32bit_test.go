//go:build linux && amd64

package diagnose

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goprof/session"
)

// TestDoctorOf32Bits: of a program of 32 bits doctor says what record would say, and not that perf works.
func TestDoctorOf32Bits(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pauses")
	if err := os.WriteFile(program, pauses(), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	if err := cmd.Start(); err != nil {
		t.Skip("this kernel runs no programs of 32 bits: ", err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	pid := cmd.Process.Pid
	r := Host{}.Examine(pid)
	_, err := session.Attach(pid)
	if want := (Host{}).Explain(pid, err); r.Cause == nil || *r.Cause != want || want.Class != NotJVM {
		t.Errorf("doctor: %+v, record: %+v", r.Cause, want)
	}
	for _, c := range r.Checks {
		if strings.Contains(c.Text, "--engine perf works") {
			t.Error(c.Text)
		}
	}
}

// pauses is a program of i386: its ELF header, one program header, and code that calls pause in a loop.
func pauses() []byte {
	const at, header, size = 0x0804_8000, 52, 52 + 32
	code := []byte{0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7} // mov $29,%eax; int $0x80; jmp back
	b := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	b = binary.LittleEndian.AppendUint32(b, 2|3<<16) // ET_EXEC, EM_386
	for _, word := range []uint32{1, at + size, header, 0, 0, header | 32<<16, 1, 0} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	for _, word := range []uint32{1, 0, at, at, size + uint32(len(code)), size + uint32(len(code)), 5, 0x1000} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return append(b, code...)
}
