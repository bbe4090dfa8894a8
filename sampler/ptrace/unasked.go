//go:build linux

package ptrace

import "golang.org/x/sys/unix"

// LeaveInPeace keeps Go's scheduler from asking this OS thread to give way while it sleeps (SleepUntil). The scheduler
// takes the thread for busy, and asks each 10 ms, by a signal that ends the sleep. Then the goroutine hands its OS
// thread over and back, which costs more than all that a sampler does in between. With the signal blocked, the OS
// thread is asked once and answers when it wakes up (runtime, preemptM: no second signal is sent before the first has
// been taken). So the garbage collector may have to wait for the end of a sleep, with all of goprof's work standing
// still. So such a sleep lasts for some ten milliseconds at most.
func LeaveInPeace() {
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGURG - 1)
	unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}
