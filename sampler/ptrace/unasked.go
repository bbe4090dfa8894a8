//go:build linux

package ptrace

import "golang.org/x/sys/unix"

// LeaveInPeace keeps Go's scheduler from interrupting this OS thread while it sleeps (SleepUntil). The scheduler
// believes that the thread is busy, and sends it a signal every 10 ms, which ends the sleep. Handing the OS thread over
// and back then costs more than all of the sampler's work in between. With the signal blocked, the thread gets one
// signal, and handles it when it wakes up (runtime, preemptM: no second signal is sent before the first has been
// taken). Until then the garbage collector, and all of goprof, may have to wait. So such a sleep is 40 ms at most.
func LeaveInPeace() {
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGURG - 1)
	unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}
