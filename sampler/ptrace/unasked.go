//go:build linux

package ptrace

import "golang.org/x/sys/unix"

// LeaveInPeace keeps Go's scheduler from interrupting this OS thread while it sleeps (SleepUntil). The scheduler
// believes that the thread is busy, and sends it a signal every 10 ms, which ends the sleep. Then Go hands the
// goroutine to another OS thread and back, which costs more than the sampler's own work. If the signal is blocked, one
// signal stays pending, and the thread handles it when it wakes up (runtime, preemptM: Go sends no second signal before
// the first was handled). Until then, the garbage collector and all of goprof may have to wait for the thread. So such
// a sleep is 40 ms at most.
func LeaveInPeace() {
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGURG - 1)
	unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}
