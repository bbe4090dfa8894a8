// Package threadpointer reads the thread pointer of the calling OS thread: the register from which thread-local
// variables are found.
package threadpointer

import (
	"time"

	"golang.org/x/sys/unix"
)

// With calls f with the thread pointer of this OS thread. On this CPU, Go without cgo uses no thread pointer, so With
// sets one during the call. The kernel keeps it across switches (arch/arm64/kernel/process.c, tls_thread_switch).
func With(f func(own uint64) error) error {
	own := get()
	if own == 0 {
		own = 0x5f3759df_9e3779b9
		set(own)
		defer set(0)
	}
	ts := unix.NsecToTimespec(int64(100 * time.Microsecond))
	unix.Nanosleep(&ts, nil)
	return f(own)
}

func get() uint64

func set(to uint64)
