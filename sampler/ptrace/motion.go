//go:build linux

package ptrace

import (
	"bytes"

	"goprof/arch"
	"goprof/process/procfs"
)

// MotionOf returns how a thread has moved so far. If two readings are equal, the thread has not run in between. For a
// thread on a CPU (StillRuns), equal readings mean nothing.
func MotionOf(proc *procfs.Dir, tid int) (Motion, bool) {
	f := followed{proc, tid, noFollowed}
	defer f.close()
	return f.motion()
}

// ChargeOf returns the cheapest part of MotionOf: the thread's CPU time, and how often it had a CPU.
func ChargeOf(proc *procfs.Dir, tid int) (procfs.Schedstat, bool) {
	f := followed{proc, tid, noFollowed}
	defer f.close()
	s, ok := procfs.ParseSchedstat(f.read(fileSchedstat))
	return s, ok && s.Turns != 0
}

// StillRuns reports whether the thread was on a CPU, or wanted one, or has ended.
func (m Motion) StillRuns() bool {
	switch m.State {
	case 'R', 'Z', 'X', 0:
		return true
	}
	return false
}

// InCall reports whether a thread waits in a system call. The result is also true for a thread that a signal has
// stopped there. aarch64 then tells no system call, and the thread stands at the instruction of the call
// (arch/arm64/kernel/signal.c, do_signal). read reads the thread's memory.
func InCall(proc *procfs.Dir, tid int, cpu *arch.CPU, read func(addr uint64, b []byte) error) bool {
	f := followed{proc, tid, noFollowed}
	defer f.close()
	call, _, _, pc, ok := procfs.ParseSyscall(f.read(fileSyscall))
	if ok && call < 0 && cpu.SetsBack() {
		at := make([]byte, len(cpu.SyscallInst))
		return read(pc, at) == nil && bytes.Equal(at, cpu.SyscallInst)
	}
	return ok && call >= 0
}
