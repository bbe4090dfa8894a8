//go:build linux

package corefile

import (
	"debug/elf"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
)

// guestEnd is above all that qemu-user maps for the program that it runs, and below what the kernel maps for qemu
// itself.
const guestEnd = 0x500000000000

// statusSizes are those of NT_PRSTATUS (arch/x86 and arch/arm64, uapi/asm/ptrace.h; uapi/linux/elfcore.h).
var statusSizes = map[elf.Machine]int{elf.EM_X86_64: 336, elf.EM_AARCH64: 392}

// WriteGuest writes the core file of a program that qemu-user runs in a process, as the kernel of that program's CPU
// would: qemu maps the program's memory where the program has it. The registers are not told: of one thread they are 0.
func WriteGuest(t testing.TB, pid int, machine elf.Machine) string {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(pid, unix.SIGCONT)
	time.Sleep(100 * time.Millisecond)
	name := filepath.Join(t.TempDir(), "core.guest")
	w := &writer{pid: pid, guest: machine}
	w.note("CORE", 1, make([]byte, statusSizes[machine]))
	if err := w.finish(name); err != nil {
		t.Fatal("writing a core file: ", err)
	}
	return name
}

// ofGuest reports whether a mapping is the program's. qemu takes the right to execute away from all code.
func ofGuest(m *process.Mapping) bool {
	if m.End > guestEnd || strings.HasPrefix(m.Path, "[v") {
		return false
	}
	if m.Perm&process.PermRead != 0 {
		m.Perm |= process.PermExec
	}
	return true
}
