//go:build linux

package ptrace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/osthread"
)

// How a thread that a preempter took the CPU from goes on where it was.
//
// Letting a thread go wakes it up, and the kernel looks for an idle CPU for it. The sampling thread runs on the
// thread's CPU, so that CPU is not idle and the thread would go on elsewhere. There its caches would be cold. If a
// virtual machine has given the idle CPU back to its host, waking that CPU takes some 50 us. But a CPU on which only
// SCHED_IDLE threads run counts as idle, and the kernel first asks the CPU where the thread was before
// (kernel/sched/fair.c, select_idle_sibling, sched_idle_cpu). So the sampling thread becomes a SCHED_IDLE thread before
// it lets the other thread go. That thread takes the CPU at once, and the sampling thread has none.
//
// Before that, the sampling thread asks the preempter of an idle CPU to bring it back. The preempter waits a little,
// moves the sampling thread to its CPU, and gives it its priority back (preempter.go, bringBack). The rest of the look
// is done there, where it holds up no thread of the program (docs/decisions/0018).

const (
	// raiseAfter is how long the preempter waits: until the thread has been let go.
	raiseAfter = int64(60_000)
	// raiseSoonest is how long it waits at least.
	raiseSoonest = int64(25_000)
	// promptly is how soon a SCHED_IDLE thread goes on if no other thread waits for its CPU.
	promptly = int64(25_000)
	// notAside is how long threads are let go with real-time priority, after a third thread took the CPU first.
	notAside = int64(30_000_000)
)

// ask has the preempter bring the sampling thread back a little later. The preempter may be about to do so already.
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
// lets the thread have its own CPU at once, and returns on the other CPU. -1: no such CPU is known.
func (t *Tracer) GoOnAt(number int) {
	if t.preempters != nil {
		t.preempters.goOn = t.preempters.preempter(number)
	}
}

// WillStepAside reports whether the sampling thread lets a thread with that hint go, on this CPU, as a SCHED_IDLE
// thread. It does not do so while stops are pending, because those threads would stand still meanwhile, nor if more is
// to be read of the thread as soon as it is let go.
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
	// The thread stood still for no longer than this thread has run since, unless a third thread took this CPU between
	// these clocks and the release, some microseconds.
	t.released = left + ownCPUTime(&t.ts) - used
	if l.at.Load() != h.goOn.number { // no thread took this CPU: the other one may be in another cgroup
		osthread.SleepUntil(&l.moved, moved, 0, &t.ts)
	}
	// The preempter may have raised the priority before it was given up, and would not raise it again.
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
