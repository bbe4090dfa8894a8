//go:build linux

package span

import (
	"time"

	"golang.org/x/sys/unix"
)

// withPointer calls f with the thread pointer of this OS thread. Go without cgo uses none on this CPU, so the thread
// gets one for the moment. The kernel keeps it when the thread leaves its CPU (arch/arm64/kernel/process.c,
// tls_thread_switch).
func withPointer(f func(own uint64) error) error {
	own := threadPointer()
	if own == 0 {
		own = 0x5f3759df_9e3779b9
		setThreadPointer(own)
		defer setThreadPointer(0)
	}
	ts := unix.NsecToTimespec(int64(100 * time.Microsecond))
	unix.Nanosleep(&ts, nil)
	return f(own)
}

func threadPointer() uint64

func setThreadPointer(to uint64)
