//go:build linux

package ptrace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/osthread"
)

// Releasing a thread on its own CPU, from which a preempter has taken it.
//
// A released thread wakes up, and the kernel looks for an idle CPU for it. The sampling thread runs on the thread's
// CPU, so that CPU is not idle and the thread would go on elsewhere. There its caches would be cold. If a virtual
// machine has given the idle CPU back to its host, waking that CPU takes some 50 us. But a CPU on which only SCHED_IDLE
// threads run counts as idle, and the kernel first asks the CPU where the thread was before (kernel/sched/fair.c,
// select_idle_sibling, sched_idle_cpu). So the sampling thread becomes a SCHED_IDLE thread before it releases the other
// thread. The other thread takes the CPU at once, and the sampling thread has no CPU.
//
// Before the release, the sampling thread asks the preempter of an idle CPU to bring it back. The preempter waits a
// little, moves the sampling thread to its CPU, and gives it its priority back (preempter.go, bringBack). The rest of
// the look is done there, where no thread of the program has to wait for it (docs/decisions/0018).

const (
	// raiseAfter is how long the preempter waits for the release of the thread.
	raiseAfter = int64(60_000)
	// raiseSoonest is the shortest such wait.
	raiseSoonest = int64(25_000)
	// promptly is how soon a SCHED_IDLE thread goes on if no other thread waits for its CPU.
	promptly = int64(25_000)
	// notAside is how long goprof releases threads with real-time priority, after a third thread took the CPU first.
	notAside = int64(30_000_000)
)

// ask asks the preempter to bring the sampling thread back a little later. The preempter may be about to do so already.
//
//go:nosplit
func (h *Preempters) ask(now int64) {
	l, r := h.shared, h.goOn
	l.asideAt.Store(now)
	l.aside.Store(1)
	if wait := r.raiseAt.Load() - now; wait < raiseSoonest || wait > raiseExpected {
		r.raiseAt.Store(now + raiseAfter)
		r.wake()
	}
}

// ServedBy says that preempters call this OS thread. They also bring it back when it has stepped aside.
func (t *Tracer) ServedBy(h *Preempters) { t.preempters = h }

// GoOnAt sets the preempter on whose CPU the sampling thread may go on, because no thread needs that CPU. Then LookHeld
// lets the thread have its own CPU at once, and returns on the other CPU. -1: there is no such CPU.
func (t *Tracer) GoOnAt(number int) {
	if t.preempters != nil {
		t.preempters.goOn = t.preempters.preempter(number)
	}
}

// WillStepAside reports whether the sampling thread will release a thread with that hint as a SCHED_IDLE thread. It
// does not if stops are pending, because these threads would wait meanwhile. It does not either if more of the thread
// must be read right after its release.
func (t *Tracer) WillStepAside(hint *Hint, now int64) bool {
	h := t.preempters
	return h != nil && h.raises && h.goOn != nil && h.goOn.number != h.shared.at.Load() && now >= h.resume &&
		len(t.pending) == 0 && !hint.Soon
}

// releaseAside is release, but tid continues on this CPU.
//
//go:nosplit
func (t *Tracer) releaseAside(tid int, sig uintptr) {
	h := t.preempters
	l := h.shared
	moved := l.moved.Load()
	begun := Monotonic()
	h.ask(begun)
	setOwnPriority(&h.idle)
	left, used := Monotonic(), ownCPUTime(&t.ts)
	t.look.letGo = ptrace(unix.PTRACE_DETACH, uintptr(tid), 0, sig)
	// The pause was no longer than the time that this thread has run since, unless a third thread took this CPU in the
	// few microseconds between these clocks and the release.
	t.released = left + ownCPUTime(&t.ts) - used
	if l.at.Load() != h.goOn.number { // no thread took this CPU: the released one may be in another cgroup
		osthread.SleepUntil(&l.moved, moved, 0, &t.ts)
	}
	// The preempter may have raised the priority too early. Then it does not raise it again.
	h.raises = setOwnPriority(&l.first) == 0
	l.aside.Store(0)
	t.noteHold(t.released - t.missed)
	if left-begun > promptly {
		h.resume = left + notAside
	}
}

//go:nosplit
func setOwnPriority(attr *unix.SchedAttr) syscall.Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_SCHED_SETATTR, 0, uintptr(unsafe.Pointer(attr)), 0)
	return e
}

//go:nosplit
func ownCPUTime(ts *unix.Timespec) int64 {
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(ts)), 0)
	return ts.Sec*1e9 + ts.Nsec
}
