//go:build linux

package threads

import (
	"goprof/arch"
	"goprof/process"
	"goprof/process/procfs"
	"goprof/sampler/look"
)

// FellAsleep reports whether a thread slept in a system call when it was stopped. The thread was chosen because it ran,
// so it entered that call in the microseconds before the stop.
func FellAsleep(cpu *arch.CPU, snap *process.Snapshot) bool {
	return IsInterrupted(cpu, snap.Syscall, snap.Regs[cpu.SyscallResult])
}

// Charged reads what the kernel has charged a thread so far. False: the thread has ended, or the kernel does not report
// charges.
func Charged(pid, tid int) (look.Charge, bool) {
	b, err := procfs.Read(procfs.TaskFile(pid, tid, "schedstat"), procfs.MaxFile)
	if err != nil {
		return look.Charge{}, false
	}
	s, ok := procfs.ParseSchedstat(b)
	return look.Charge{Ran: s.Ran, Turns: s.Turns}, ok && s.Turns > 0
}
