//go:build linux

package ptrace

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// seize makes tid a tracee. Nothing stops yet.
//
// PTRACE_SEIZE waits while the process is in the middle of an exec (cred_guard_mutex, kernel/ptrace.c, ptrace_attach).
// The exec waits until all other threads of the process have ended and their tracer has reaped them (fs/exec.c,
// de_thread). That tracer is goprof if one of them is on the pending list, or if HoldAll holds it. Both would wait
// forever. So the releaser's signal handler reaps ended threads meanwhile. After the handler has run, the kernel
// restarts the call.
//
// Go's scheduler knows of the call, because an exec may take long.
func (t *Tracer) seize(tid int) syscall.Errno {
	r := t.openReleaser()
	if len(t.pending)+len(t.reaped) > 0 { // starts the handler's signals
		r.seizing = t
		if !r.on && r.timer != noTimer {
			r.set(releaseEvery)
		}
	}
	_, _, e := syscall.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, 0, 0, 0)
	r.seizing = nil
	return e
}

// reapEnded reaps those of the pending or held threads that have ended.
//
//go:nosplit
func (t *Tracer) reapEnded() {
	for i := range t.pending {
		if tid := t.pending[i].tid; tid != t.pid {
			waitReap(tid)
		}
	}
	for _, tid := range t.reaped {
		if tid != t.pid {
			waitReap(tid)
		}
	}
}
