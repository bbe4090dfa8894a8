//go:build linux

package ptrace

import (
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// seize makes tid our tracee. Nothing stops yet.
//
// PTRACE_SEIZE waits while the process is in the middle of an exec (cred_guard_mutex, kernel/ptrace.c, ptrace_attach).
// The exec waits until all other threads of the process have ended and their tracer has reaped them (fs/exec.c,
// de_thread). We are that tracer, if one of them is on the pending list. Both would wait forever. No signal helps, for
// the call is restarted. But any thread of ours may reap. So while stops are pending, a timer watches over the call and
// reaps ended threads from another OS thread.
//
// The call is made in the way that tells Go's scheduler: the scheduler must be able to run that timer.
func (t *Tracer) seize(tid int) syscall.Errno {
	watch := len(t.pending) > 0
	if watch {
		t.rescue.begin(t)
	}
	_, _, e := syscall.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, 0, 0, 0)
	if watch {
		t.rescue.end()
	}
	return e
}

// rescueAfter is how long a seize may take before the rescuer reaps.
const rescueAfter = 5 * time.Millisecond

// rescuer reaps ended threads of the pending list while the tracing thread is held up.
type rescuer struct {
	mu    sync.Mutex
	timer *time.Timer
	on    bool
}

func (r *rescuer) begin(t *Tracer) {
	r.mu.Lock() // work may run before AfterFunc has returned, and uses r.timer
	defer r.mu.Unlock()
	r.on = true
	if r.timer == nil {
		r.timer = time.AfterFunc(rescueAfter, func() { r.work(t) })
		return
	}
	r.timer.Reset(rescueAfter)
}

// end waits for a reaping that is under way. After that the pending list belongs to the tracing thread again.
func (r *rescuer) end() {
	r.timer.Stop()
	r.mu.Lock()
	r.on = false
	r.mu.Unlock()
}

func (r *rescuer) work(t *Tracer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on {
		return
	}
	for i := range t.pending {
		if tid := t.pending[i].tid; tid != t.pid {
			waitReap(tid, 0)
		}
	}
	r.timer.Reset(rescueAfter)
}
