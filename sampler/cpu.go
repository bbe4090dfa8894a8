//go:build linux

package sampler

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadCPU is the CPU time of this OS thread.
func ThreadCPU() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// OwnCPU is the CPU time of all of goprof, in nanoseconds.
func OwnCPU() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
