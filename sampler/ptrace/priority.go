//go:build linux

package ptrace

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// preemptAtOnce gives this OS thread a CPU at the moment at which it wakes up (docs/decisions/0003).
//
// An ordinary thread that wakes up waits until the running thread has used up its slice. The kernel notices the end of
// the slice at a tick, or when the running thread makes a system call. So too many samples would be taken at system
// calls. And on a busy machine, a pause would last as long as this thread waits for a CPU. This thread needs little CPU
// time: each of its loops is bounded. Without privileges, the kernel does not permit real-time priority. Then the
// thread gets a better ordinary priority, or keeps its own.
func preemptAtOnce() {
	goFirst(0, tracerPriority)
}

// PreemptsAtOnce is preemptAtOnce for another OS thread of goprof.
func PreemptsAtOnce(tid int) { goFirst(tid, tracerPriority) }

// PreemptAtOnce is preemptAtOnce for a thread that has called WaitItsTurn.
func PreemptAtOnce() { preemptAtOnce() }

// WaitItsTurn gives this OS thread a better ordinary priority than others have, in place of the real-time priority of
// preemptAtOnce. Such a thread waits until the running thread's slice is over. So WaitItsTurn is for work that is not
// urgent. If a better priority is not permitted, the thread gets the priority that it was started with. WaitItsTurn
// returns false if neither could be set.
func WaitItsTurn() bool { return waitTurn(0) }

// waitTurn is WaitItsTurn for any OS thread of goprof. waitTurn also asks for a short slice: since Linux 6.12 a thread
// that wakes up with a shorter slice than the running thread's gets the CPU before that slice is over
// (kernel/sched/features.h, PREEMPT_SHORT; no permission is needed). Older kernels ignore the length.
func waitTurn(tid int) bool {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: resetOnFork, Nice: betterNice, Runtime: shortSlice}
	if setAttr(tid, &attr) {
		return true
	}
	attr.Nice = niceOf(tid)
	return setAttr(tid, &attr)
}

// shortSlice is the shortest slice that the kernel grants, in ns (kernel/sched/syscalls.c, __setparam_fair).
const shortSlice = 100_000

// betterNice is the priority of a thread that may not, or need not, have real-time priority.
const betterNice = -15

// The priorities of the tracing thread, its Runner and its preempters, in SCHED_FIFO: the lowest that suffice.
const (
	tracerPriority    = 1
	runnerPriority    = 2
	preempterPriority = 3
)

// resetOnFork is SCHED_FLAG_RESET_ON_FORK: what goprof starts does not inherit the priority.
const resetOnFork = 1

// goFirst gives an OS thread (0: this one) real-time priority; see preemptAtOnce. If that is not permitted, goFirst
// asks for a better ordinary priority than others have, and returns false. It does the same on a machine with one CPU,
// because this thread may have to wait for Go's garbage collector, which needs that CPU.
func goFirst(tid int, priority uint32) bool {
	attr := realTime(priority)
	if runtime.NumCPU() == 1 || !setAttr(tid, &attr) {
		waitTurn(tid)
		return false
	}
	return true
}

func realTime(priority uint32) unix.SchedAttr {
	return unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: resetOnFork, Priority: priority}
}

// setAttr is unix.SchedSetAttr as a raw system call. After an ordinary system call, Go may have the thread spin until
// its stack is scanned. It must not spin with the new real-time priority (see SleepUntil).
func setAttr(tid int, attr *unix.SchedAttr) bool {
	_, _, e := syscall.RawSyscall(unix.SYS_SCHED_SETATTR, uintptr(tid), uintptr(unsafe.Pointer(attr)), 0)
	return e == 0
}

// isUrgent reports whether this OS thread has real-time priority.
func isUrgent() bool {
	policy, _, e := syscall.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	return e == 0 && policy&^schedResetOnFork == unix.SCHED_FIFO
}

// schedResetOnFork is SCHED_RESET_ON_FORK, which sched_getscheduler(2) adds to a policy.
const schedResetOnFork = 1 << 30

// niceOf returns the nice level of an OS thread (0: this one). A thread also has one beside real-time priority. The
// system call returns 20 less that level (getpriority(2)).
func niceOf(tid int) int32 {
	level, _, e := syscall.RawSyscall(unix.SYS_GETPRIORITY, unix.PRIO_PROCESS, uintptr(tid), 0)
	if e != 0 {
		return 0
	}
	return 20 - int32(level)
}
