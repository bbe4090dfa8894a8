//go:build linux

package ptrace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/osthread"
)

// How a thread that we took the CPU from goes on where it was.
//
// To let a thread go is to wake it up, and the kernel looks for an idle CPU for it. Ours is not idle while we hold it,
// so the thread would go on elsewhere: its caches are cold there, and a CPU that a virtual machine has given back
// takes some 50 us to come. But a CPU on which only SCHED_IDLE threads are counts as idle, and the one where the thread
// was before is asked first (kernel/sched/fair.c, select_idle_sibling, sched_idle_cpu). So we are such a thread while
// we let it go. It takes the CPU from us at once, and we have none.
//
// Before that we ask the preempter of an idle CPU. It waits a little, brings us to its CPU and gives us our priority
// back (preempter.go, bringBack). There our books are in nobody's way (docs/decisions/0018).

const (
	// raiseAfter is how long the preempter waits: until we have let the thread go.
	raiseAfter = int64(60_000)
	// raiseSoonest is how long it waits at least.
	raiseSoonest = int64(25_000)
	// promptly is how soon we go on as a SCHED_IDLE thread where nobody else waits for this CPU.
	promptly = int64(25_000)
	// notAside is for how long we let threads go as we are, after somebody else took the CPU from us first.
	notAside = int64(30_000_000)
)

// ask has the preempter bring us back a little later. It may be about to do so already.
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

// GoOnAt says which preempter's CPU nobody needs: LookHeld lets the thread have its own CPU at once, and returns there.
// -1: no such CPU is known.
func (t *Tracer) GoOnAt(number int) {
	if t.preempters != nil {
		t.preempters.goOn = t.preempters.preempter(number)
	}
}

// WillStepAside reports whether a thread of which hint is known, on the CPU where we are, is to be let go by a
// SCHED_IDLE thread. Not where stops are pending: those threads would stand still meanwhile. Not where more is to be
// read of the thread as soon as it is let go.
func (t *Tracer) WillStepAside(hint *Hint, now int64) bool {
	h := t.preempters
	return h != nil && h.raises && h.goOn != nil && h.goOn.number != h.shared.at.Load() && now >= h.resume &&
		len(t.pending) == 0 && !hint.Soon
}

// releaseAside is release that has tid go on on this CPU.
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
	// The thread stood still for no longer than we have run since, unless somebody else took this CPU between these
	// clocks and its release, some microseconds.
	t.released = left + ownCPUTime(&t.ts) - used
	if l.at.Load() != h.goOn.number { // nobody took this CPU from us, as where the thread is in another cgroup
		osthread.SleepUntil(&l.moved, moved, 0, &t.ts)
	}
	// It may have been raised before we gave it up, and nobody would raise it again.
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
