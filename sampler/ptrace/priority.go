//go:build linux

package ptrace

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// preemptAtOnce gives our OS thread a CPU at the moment at which it wakes up (docs/decisions/0003).
//
// An ordinary thread that wakes up waits until the one that runs has used up its slice, and
// the kernel notices that at a tick, or where that thread itself enters the scheduler: then
// samples would gather at its system calls. And where CPUs are short, a thread of the target
// would stand still for as long as we wait for one. We need little of it: every loop on this
// thread is bounded. Not permitted without privileges: then a better priority, or it is as it is.
func preemptAtOnce() {
	goFirst(0, tracerPriority)
}

// The tracing thread and its Runner, as SCHED_FIFO counts. Both are the lowest that do.
const (
	tracerPriority = 1
	runnerPriority = 2
)

// resetOnFork is SCHED_FLAG_RESET_ON_FORK: nothing that we start has our priority.
const resetOnFork = 1

// goFirst gives an OS thread (0: our own) real-time priority; see preemptAtOnce. Where that is not permitted: a
// better one than others have, and it is false. Not where there is but one CPU: whoever we may have to wait for, Go's
// garbage collector among them, has no other.
func goFirst(tid int, priority uint32) bool {
	attr := realTime(priority)
	if runtime.NumCPU() == 1 || unix.SchedSetAttr(tid, &attr, 0) != nil {
		unix.Setpriority(unix.PRIO_PROCESS, tid, -15)
		return false
	}
	return true
}

func realTime(priority uint32) unix.SchedAttr {
	return unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: resetOnFork, Priority: priority}
}
