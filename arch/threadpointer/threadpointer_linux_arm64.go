// Package threadpointer reads the thread pointer of the calling OS thread: the register from which thread-local
// variables are found.
package threadpointer

import (
	"time"

	"golang.org/x/sys/unix"
)

// With calls f with the thread pointer of this OS thread. On this CPU, Go without cgo uses no thread pointer, so With
// sets one during the call. The kernel notes it in the thread's struct when it takes the CPU from the thread
// (arch/arm64/kernel/process.c, tls_thread_switch), so With sleeps until that was done: a short sleep may be over
// before the thread gives up its CPU.
func With(f func(own uint64) error) error {
	own := get()
	if own == 0 {
		own = 0x5f3759df_9e3779b9
		set(own)
		defer set(0)
	}
	before := switches()
	for pause := 100 * time.Microsecond; switches() == before && pause < time.Second; pause *= 2 {
		ts := unix.NsecToTimespec(int64(pause))
		unix.Nanosleep(&ts, nil)
	}
	return f(own)
}

// switches is how often this OS thread has given up its CPU, or lost it.
func switches() int64 {
	var usage unix.Rusage
	unix.Getrusage(unix.RUSAGE_THREAD, &usage) // cannot fail
	return usage.Nvcsw + usage.Nivcsw
}

func get() uint64

func set(to uint64)
