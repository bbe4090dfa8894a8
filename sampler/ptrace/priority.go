//go:build linux

package ptrace

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// preemptAtOnce gives our OS thread a CPU at the moment at which it wakes up (docs/decisions/0003).
//
// An ordinary thread that wakes up waits until the running thread has used up its slice. The kernel notices the end of
// the slice at a tick, or where the running thread itself enters the scheduler: then samples would gather at its system
// calls. And where CPUs are short, a thread of the target would stand still for as long as we wait for a CPU. We need
// little CPU time: every loop on this thread is bounded. Without privileges this is not permitted. Then we get a better
// priority, or nothing changes.
func preemptAtOnce() {
	goFirst(0, tracerPriority)
}

// PreemptsAtOnce is preemptAtOnce for another OS thread of ours.
func PreemptsAtOnce(tid int) { goFirst(tid, tracerPriority) }

// PreemptAtOnce is preemptAtOnce for a thread that has called WaitItsTurn.
func PreemptAtOnce() { preemptAtOnce() }

// WaitItsTurn gives our OS thread a better ordinary priority than others have, in place of preemptAtOnce's. It is for a
// thread whose work is not urgent: then it takes the CPU from nobody in the midst of a slice. It is also for a sleep of
// which Go's scheduler is told.
func WaitItsTurn() {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: resetOnFork, Nice: betterNice}
	unix.SchedSetAttr(0, &attr, 0)
}

// betterNice is the priority of a thread that may not, or need not, have real-time priority.
const betterNice = -15

// The priorities of the tracing thread, its Runner and its heralds, as SCHED_FIFO counts: the lowest that serve.
const (
	tracerPriority = 1
	runnerPriority = 2
	heraldPriority = 3
)

// resetOnFork is SCHED_FLAG_RESET_ON_FORK: nothing that we start has our priority.
const resetOnFork = 1

// goFirst gives an OS thread (0: our own) real-time priority; see preemptAtOnce. Where that is not permitted, goFirst
// asks for a better ordinary priority than others have, and returns false. It does the same where there is but one CPU:
// a thread that we may have to wait for, such as Go's garbage collector, has no other CPU.
func goFirst(tid int, priority uint32) bool {
	attr := realTime(priority)
	if runtime.NumCPU() == 1 || unix.SchedSetAttr(tid, &attr, 0) != nil {
		unix.Setpriority(unix.PRIO_PROCESS, tid, betterNice)
		return false
	}
	return true
}

func realTime(priority uint32) unix.SchedAttr {
	return unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: resetOnFork, Priority: priority}
}
