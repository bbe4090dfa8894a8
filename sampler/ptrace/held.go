//go:build linux

package ptrace

import (
	"golang.org/x/sys/unix"

	"goprof/sampler/look"
)

// Met is a thread that lost its CPU to a preempter.
type Met struct {
	TID     int
	Arrived int64 // when the preempter took its CPU
	Owned   bool  // by the kernel's note, the thread belongs to this process
}

// LookHeld looks at a thread that lost its CPU to a preempter at the moment arrived, and now waits in the queue of that
// CPU. The thread runs no instruction before it stops, so the look shows it where it lost the CPU. The thread stops as
// soon as the sampling thread sleeps. LookHeld waits for that stop until a preempter makes the sampling thread go on
// (preempter.go, hurry). Collect handles a later stop.
//
// To stop a thread that runs on another CPU, goprof would have to interrupt that CPU. Until the interrupt comes (1 us
// on bare metal, 20 us in some virtual machines) the thread runs on, and if it makes a system call, it stops at once.
// So it would be seen too often in its system calls (docs/decisions/0004).
func (t *Tracer) LookHeld(met Met, hint Hint, snap *look.Look) Outcome {
	tid, arrived := met.TID, met.Arrived
	snap.TID = tid
	if why, ok := t.mayStop(tid, Monotonic()-arrived); !ok {
		return why
	}
	t.pin() // keeps this OS thread on this CPU
	t.lookTID = tid
	aside := t.WillStepAside(&hint, arrived)
	setSignalMask(&t.mask, &t.oldMask)
	if e := t.seize(tid); e != 0 {
		setSignalMask(&t.oldMask, nil)
		return t.refused(tid, e)
	}
	// Once a thread is seized, its number cannot pass to another thread.
	ours := met.Owned || t.proc.Owns(tid)
	t.beginPause()
	s, sig := t.stopOnOurCPU(tid, arrived)
	if s == stopped && ours {
		t.copyStopped(tid, &hint)
	}
	switch {
	case s == running:
		t.guard = t.releaser.watch(tid, t.missed)
	case s != stopped:
	case aside && !t.silent && ours:
		t.releaseAside(tid, sig)
		t.BoundTo(CurrentCPU())
	default:
		t.release(tid, sig)
	}
	t.endPause()
	defer t.keepUp()

	if !ours || met.Owned && t.proc.Ended() { // the number of the process may belong to another process by now

		t.undo(tid, s)
		return t.gone()
	}
	return t.conclude(tid, s, sig, &hint, snap)
}

// stopOnOurCPU stops a thread that waits for this OS thread's CPU. It asks for the stop, and then gives the CPU up to
// the thread. Its results are those of peek.
//
//go:nosplit
func (t *Tracer) stopOnOurCPU(tid int, arrived int64) (state, uintptr) {
	ptrace(unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0) // if this fails, peek returns why
	e := waitStop(tid, &t.info)
	if t.preempters != nil {
		t.preempters.Busy() // the wait is over: no preempter must hurry
	}
	now := Monotonic()
	if t.missed = arrived; now-arrived > stopWithin {
		t.missed = now // other threads had this CPU first: the thread has just stopped
	}
	t.readUntil = now + readLimit
	if e != 0 {
		return t.peek(tid)
	}
	return t.info.decode()
}
