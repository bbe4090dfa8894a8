//go:build linux

package sampler

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ThreadCPU is the CPU time of this OS thread.
func ThreadCPU() time.Duration { return time.Duration(clock(unix.CLOCK_THREAD_CPUTIME_ID)) }

// OwnCPU is the CPU time of all of goprof, in nanoseconds.
func OwnCPU() int64 { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// clock asks the kernel without telling Go's scheduler, which would wake up the thread that watches system calls.
func clock(which uintptr) int64 {
	var ts unix.Timespec
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, which, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}
