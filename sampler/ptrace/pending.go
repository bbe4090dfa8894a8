//go:build linux

package ptrace

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/look"
)

// pendingStop is a thread that was told to stop but has not stopped yet.
type pendingStop struct {
	tid    int
	hint   Hint
	snap   *look.Look // nil: the thread is only to be released
	asked  int64
	missed int64 // when the thread was last seen not to have stopped
	verify int64 // when to check that the thread is still a tracee
	letGo  bool  // the thread was released without a look: see letGoStopped
	killed bool  // the thread was killed before its release
	guard  *lateStop
}

// verifyAfter is the time until goprof first checks whether a pending thread is still a tracee. Each further check
// comes after twice as long.
const verifyAfter = int64(5 * time.Millisecond)

func (t *Tracer) newPending(tid int, hint Hint, snap *look.Look, now int64, guard *lateStop) pendingStop {
	return pendingStop{tid, hint, snap, now, now, now + verifyAfter, false, false, guard}
}

// Pending returns how many threads were told to stop and have not stopped yet. While there are any, call Collect often
// (Patience says how soon), because a thread that has stopped waits for Collect.
func (t *Tracer) Pending() int { return len(t.pending) }

// pendingWantCPU reports whether a pending thread is ready to run. Such a thread stops when it gets a CPU.
func (t *Tracer) pendingWantCPU() bool {
	for i := range t.pending {
		if procfs.State(t.proc.Read(t.pending[i].tid, "stat")) == 'R' {
			return true
		}
	}
	return false
}

// HasRoom reports whether tid can be told to stop: it is not pending, and not too many other threads are pending.
func (t *Tracer) HasRoom(tid int) bool { return len(t.pending) < MaxPending && !t.isPending(tid) }

func (t *Tracer) isPending(tid int) bool {
	for i := range t.pending {
		if t.pending[i].tid == tid {
			return true
		}
	}
	return false
}

// CountAgain adds more samples to a pending look, because the thread was met again before it stopped. CountAgain
// returns false if the thread is not pending.
func (t *Tracer) CountAgain(tid int, more int64) bool {
	for i := range t.pending {
		if p := &t.pending[i]; p.tid == tid {
			if p.snap != nil {
				p.snap.Count += more
			}
			return true
		}
	}
	return false
}

// Collect handles the pending stops. It returns one snapshot of a thread that has stopped by now (and was released) or
// has ended. ok is false if there is none. Call Collect until ok is false.
func (t *Tracer) Collect() (snap *look.Look, o Outcome, ok bool) {
	if !t.onItsThread() {
		return nil, WrongThread, false
	}
	for range len(t.pending) {
		if t.nextP >= len(t.pending) {
			t.nextP = 0
		}
		p := &t.pending[t.nextP]
		now := Monotonic()
		p.seenLate()
		s := lost
		if !p.letGo && p.guard.letGo == 0 {
			s, _ = t.peek(p.tid)
		}
		if s == running && t.stillOurs(p, now) {
			p.missed = now
			t.nextP++
			continue
		}
		done := *p
		t.pending[t.nextP] = t.pending[len(t.pending)-1]
		t.pending = t.pending[:len(t.pending)-1]
		o := Missed
		switch {
		case !done.letGo:
			o = t.finishLate(done)
		case done.killed:
			done.guard.done()
			t.expectEnd(done.tid)
		default:
			done.guard.done()
		}
		if done.snap != nil {
			return done.snap, o, true
		}
	}
	return nil, Taken, false
}

// seenLate takes over the time at which the releaser last saw that the thread had not stopped.
func (p *pendingStop) seenLate() { p.missed = max(p.missed, p.guard.clear) }

// stillOurs reports whether a pending thread is still a tracee, so that goprof does not wait forever. An exec gives the
// leader's number to another thread. If the target is goprof's own child, waitid goes on answering for that number. If
// the other thread is a tracee too, it may have missed the request to stop, so stillOurs repeats the request. A second
// request does no harm: the release cancels the stop that is still to come.
func (t *Tracer) stillOurs(p *pendingStop, now int64) bool {
	if now < p.verify {
		return true
	}
	p.verify = now + 2*(now-p.asked)
	if t.proc.Tracer(p.tid) != t.owner {
		return false
	}
	ptrace(unix.PTRACE_INTERRUPT, uintptr(p.tid), 0, 0)
	return true
}

// finishLate finishes the look at a thread that has stopped late, as Look does for other threads.
func (t *Tracer) finishLate(p pendingStop) Outcome {
	t.lookTID = p.tid
	want := p.snap != nil && t.reader != nil && !t.readIsUnderWay(p.tid)
	if want {
		t.pin()
		defer t.unpin()
	}
	setSignalMask(&t.mask, &t.oldMask)
	t.beginPause()
	p.guard.done()
	t.missed = p.missed
	t.beginReads()
	s, sig := t.peek(p.tid)
	if s == stopped {
		if want {
			t.copyStopped(p.tid, &p.hint)
		}
		t.release(p.tid, sig)
	}
	t.endPause()
	switch {
	case p.guard.letGo != 0:
		t.noteHold(p.guard.letGo - p.missed)
		return Missed
	case s == running:
		// The thread was killed since it stopped, and is about to end. Or it is no longer a tracee.
		t.expectEnd(p.tid)
		return t.gone()
	}
	o := t.readsCameBack(p.tid)
	if o == Taken && want {
		return t.finish(p.tid, s, sig, &p.hint, p.snap)
	}
	t.undo(p.tid, s)
	switch {
	case o != Taken:
		return o
	case p.snap != nil:
		return t.whyNoReader()
	}
	return t.gone()
}

// Patience returns how long the caller may wait before the next Collect, because a stopped thread waits for that
// Collect. It is an eighth of the time for which the thread has waited for its CPU, but at least 20 us and at most 0.5
// ms. On a machine with one CPU, each stop comes while the sampling thread sleeps, and lasts until the sampling thread
// wakes up (docs/evidence/performance.md).
func (t *Tracer) Patience() time.Duration {
	if len(t.pending) == 0 {
		return time.Hour
	}
	wait := int64(500 * time.Microsecond)
	for i := range t.pending {
		p := &t.pending[i]
		wait = min(wait, max((p.missed-p.asked)/8, int64(20*time.Microsecond)))
	}
	return time.Duration(wait)
}

// Abandon gives up all pending stops and hands back their snapshots with the outcome TimedOut. The threads are still
// seized, so the caller must end this OS thread (see Tracer).
func (t *Tracer) Abandon(each func(*look.Look, Outcome)) {
	for _, p := range t.pending {
		if p.snap != nil {
			each(p.snap, TimedOut)
		}
	}
	t.pending = t.pending[:0]
}

// expectEnd keeps a thread on the list until its end can be reaped.
func (t *Tracer) expectEnd(tid int) {
	if s, _ := t.peek(tid); s == ended {
		t.reap(tid)
		return
	} else if s == lost || t.proc.Tracer(tid) != t.owner {
		t.adoptAfterExec(tid)
		return
	}
	t.letGoLater(tid)
}

// letGoLater puts a seized thread on the list, and asks it to stop again. The first request may have missed the thread,
// because an exec came between the seizing and the request.
func (t *Tracer) letGoLater(tid int) {
	now := Monotonic()
	p := t.newPending(tid, Hint{}, nil, now, t.releaser.watch(tid, now))
	ptrace(unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0)
	t.pending = append(t.pending, p)
}

// adoptAfterExec handles a thread that runs exec while it is pending. The thread takes over the leader's number
// (fs/exec.c, de_thread), is still a tracee, and will stop under that number.
func (t *Tracer) adoptAfterExec(tid int) {
	if tid == t.pid || t.isPending(t.pid) {
		return
	}
	if s, _ := t.peek(t.pid); s == lost || (s == running && t.proc.Tracer(t.pid) != t.owner) {
		return
	}
	t.letGoLater(t.pid)
}

// reap consumes the end of a thread. It leaves the end of goprof's own child to the code that started the child.
func (t *Tracer) reap(tid int) {
	if tid == t.pid && t.proc.IsOwnChild() {
		return
	}
	waitReap(tid)
}
