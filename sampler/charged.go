//go:build linux

package sampler

import (
	"fmt"
	"os"

	"goprof/arch"
	"goprof/process"
)

// FellAsleep reports whether a thread slept in a system call when it was stopped. It was chosen because it ran: it has
// entered that call in the microseconds before.
func FellAsleep(cpu *arch.CPU, snap *process.Snapshot) bool {
	return isInterrupted(cpu, snap.Syscall, snap.Regs[cpu.SyscallResult])
}

// Charged reads what the kernel has charged a thread so far. False: it has ended, or the kernel does not tell.
func Charged(pid, tid int) (process.Charge, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	if err != nil {
		return process.Charge{}, false
	}
	s, ok := parseSchedstat(b)
	return process.Charge{Ran: s.ran, Turns: s.turns}, ok && s.turns > 0
}
