//go:build linux

package ptrace

import (
	"golang.org/x/sys/unix"

	"goprof/sampler/look"
)

// LookHeld looks at a thread that lost its CPU to us at the moment arrived, and waits in that CPU's queue. It runs no
// instruction of its own before it stops: where it was when we came is where it is seen. It stops as soon as we
// sleep, for which this waits until the time of Alarm.Set; later stops are left to Collect.
//
// Telling a thread to stop that runs on another CPU takes an interrupt between CPUs instead. Until that comes (1 us
// on bare metal, 20 us in some virtual machines) the thread runs on, and where it calls the kernel it stops at once:
// so it would be seen too often in its system calls (docs/decisions/0004).
func (t *Tracer) LookHeld(tid int, arrived int64, hint Hint, snap *look.Look) Outcome {
	snap.TID = tid
	if why, ok := t.mayStop(tid); !ok {
		return why
	}
	t.pin() // where we are
	t.lookTID = tid
	aside := t.WillStepAside(&hint, arrived)
	setSignalMask(&t.mask, &t.oldMask)
	if e := t.seize(tid); e != 0 {
		setSignalMask(&t.oldMask, nil)
		return t.refused(tid, e)
	}
	ours := t.proc.Owns(tid) // now that it is seized, its number cannot pass to another thread
	s, sig := t.stopOnOurCPU(tid, arrived)
	t.beginReads()
	if s == stopped && ours {
		t.copyStopped(tid, &hint)
	}
	switch {
	case s != stopped:
	case aside && !t.silent && ours:
		t.releaseAside(tid, sig)
		t.BoundTo(CurrentCPU()) // where reads are made from now on
	default:
		t.release(tid, sig)
	}
	setSignalMask(&t.oldMask, nil)

	if !ours {
		t.undo(tid, s)
		return t.gone()
	}
	return t.conclude(tid, s, sig, &hint, snap)
}

// stopOnOurCPU tells a thread to stop that waits for the CPU on which we are, and lets it have that CPU.
//
//go:nosplit
func (t *Tracer) stopOnOurCPU(tid int, arrived int64) (state, uintptr) {
	t.missed = arrived
	ptrace(unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0) // if this failed, peek says why
	waitStop(tid, &t.info)
	return t.peek(tid)
}
