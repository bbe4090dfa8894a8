// Package threadpointer tells the thread pointer of the OS thread that asks: the register from which thread-local
// variables are found.
package threadpointer

import (
	"time"

	"golang.org/x/sys/unix"
)

// With calls f with the thread pointer of this OS thread. Go without cgo uses none on this CPU, so the thread
// gets one for the moment. The kernel keeps it when the thread leaves its CPU (arch/arm64/kernel/process.c,
// tls_thread_switch).
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
