//go:build linux

package ptrace

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/look"
)

const (
	// lastWait bounds the wait for the next pending stop if no pending thread waits for a CPU to stop on.
	lastWait = 100 * time.Millisecond
	// maxWait bounds a wait for all pending stops. Stops come one after the other, because each of thousands of threads
	// needs the CPU for a moment to stop. A caller that waits longer than usual for one stop waits maxWaits times as
	// long for all.
	maxWait  = 10 * time.Second
	maxWaits = 6
	// mostPending is how many threads are told to stop before the first of them has stopped. With more pending threads,
	// each pause would be longer.
	mostPending = 32
)

// Subject is a thread to look at.
type Subject struct {
	TID  int
	Hint Hint
}

// mostReady bounds the snapshots that wait until no thread is stopped.
const mostReady = 64

// AllUntil looks again at threads that were released because of others, in at most mostPasses passes. If a stop was not
// admitted, the next pass comes after admittedSoon. After mostPasses passes, AllUntil tries such threads again every
// admittedLater, until its time is over. The first passes together cover several periods of a limit on CPU time (a
// period mostly lasts 100 ms). After a long wait for a CPU, no stop is admitted for a second or more (firstRest).
const (
	mostPasses    = 16
	admittedSoon  = 20 * time.Millisecond
	admittedLater = 200 * time.Millisecond
)

// AllUntil looks at each thread once, for a dump. It calls each for every thread, with a snapshot that is valid during
// the call. During the call no thread is stopped or about to stop, except threads that did not stop in time. If no
// pending thread has stopped for the time wait, all of them are given up. If none of them wants a CPU, the kernel holds
// them up, and they are given up after 100 ms. Let the OS thread end afterwards (see Tracer).
//
// AllUntil looks without a stop at three sorts of threads: those that were given up, those that cannot be told to stop
// because too many others are held up, and those whose stop is not admitted. If such a thread sleeps, Waiting.Unstopped
// is set. Otherwise its outcome is TimedOut or Unadmitted.
//
// Once gaveUp is closed, AllUntil does not wait for a call of each that does not return. It reports whether all calls
// have returned. Another goroutine calls each, one call at a time, while this goroutine handles late stops.
func AllUntil(gaveUp <-chan struct{}, t *Tracer, wait time.Duration, threads []Subject, each func(*look.Look,
	Outcome)) bool {
	a := all{t: t, wait: wait, until: Monotonic() + int64(wait), each: each, gaveUp: gaveUp, hints: map[int]Hint{}}
	for len(threads) > 0 && a.pass(threads) {
		threads, a.bystanders = a.bystanders, nil
		a.passes++
		if a.nap {
			a.nap = false
			nap := admittedSoon
			if a.passes >= mostPasses {
				nap = admittedLater
			}
			ts := unix.NsecToTimespec(Monotonic() + int64(nap))
			SleepUntil(&ts)
		}
	}
	return !a.over
}

// pass looks at each thread once, unless Tracer.Enough ends it. Afterwards no stop is pending, and a.bystanders are the
// threads to look at again. It returns false if a call of each does not return.
func (a *all) pass(threads []Subject) bool {
	t := a.t
	for _, th := range threads {
		if t.enough() {
			break
		}
		a.hints[th.TID] = th.Hint
		snap := a.look()
		snap.Reset()
		o := t.Look(th.TID, th.Hint, snap)
		switch o {
		case Backlog:
			o = a.withoutStop(snap, TimedOut)
		case Unadmitted:
			o = a.withoutStop(snap, Unadmitted)
		}
		if o != Pending {
			a.keep(snap, o)
		}
		a.collect()
		if a.over {
			return false
		}
		switch {
		case t.Pending() == 0:
			a.handOver()
		case t.Pending() > min(a.stuck+mostPending, MaxPending-1):
			a.collectUntil(a.stuck + mostPending/2)
		case len(a.ready) >= mostReady:
			a.collectUntil(a.stuck)
			a.handOver()
		}
	}
	a.collectUntil(0)
	t.Abandon(func(snap *look.Look, o Outcome) { a.keep(snap, a.withoutStop(snap, o)) })
	a.handOver()
	return !a.over
}

// withoutStop looks at a thread that could not be stopped. otherwise is the outcome if the thread does not sleep, or if
// the kernel permits no look without a stop. In the second case otherwise says what prevented the stop, and AllUntil
// looks at the thread again.
func (a *all) withoutStop(snap *look.Look, otherwise Outcome) Outcome {
	tid := snap.TID
	snap.Reset()
	switch o := a.t.LookUnstopped(tid, a.hints[tid], snap); o {
	case Running, Moved, NotPermitted:
		return otherwise
	default:
		return o
	}
}

// keep stores a look's outcome for later. It does not call each at once: that takes time, and threads that stop
// meanwhile would have to wait. AllUntil looks at a thread again if its stop was not admitted, if it was released
// without a look (Missed), or if its memory was read too late.
func (a *all) keep(snap *look.Look, o Outcome) {
	again := o == Unadmitted || o == Missed || o == ReadLate
	if again && (a.passes < mostPasses || o == Unadmitted && Monotonic() < a.until) {
		a.nap = a.nap || o != Missed
		a.bystanders = append(a.bystanders, Subject{snap.TID, a.hints[snap.TID]})
		a.spare = append(a.spare, snap)
		return
	}
	a.ready = append(a.ready, outcome{snap, o})
}

// all is the state of an AllUntil.
type all struct {
	t     *Tracer
	wait  time.Duration
	until int64 // until then, stops that are not admitted are tried again
	each  func(*look.Look, Outcome)
	ready []outcome
	spare []*look.Look
	stuck int // stops that did not come in time, and may never come

	gaveUp     <-chan struct{}
	over       bool
	hints      map[int]Hint
	bystanders []Subject // threads to look at again
	passes     int
	nap        bool // a stop was not admitted, so the next pass comes a little later
}

type outcome struct {
	snap *look.Look
	o    Outcome
}

func (a *all) look() *look.Look {
	if n := len(a.spare); n > 0 {
		snap := a.spare[n-1]
		a.spare = a.spare[:n-1]
		return snap
	}
	return new(look.Look)
}

// handOver calls each for the looks that are ready, on another goroutine, while this one goes on with late stops.
func (a *all) handOver() {
	if len(a.ready) == 0 || a.over {
		return
	}
	ready := a.ready
	a.ready = nil
	done := make(chan struct{})
	go func() {
		for _, r := range ready {
			a.each(r.snap, r.o)
		}
		close(done)
	}()
	for {
		select {
		case <-done:
			for _, r := range ready {
				a.spare = append(a.spare, r.snap)
			}
			return
		case <-a.gaveUp:
			a.over = true
			return
		case <-time.After(a.t.Patience()):
			a.collect()
		}
	}
}

func (a *all) collect() { collectAll(a.t, a.keep) }

// collectUntil waits until no more than left stops are pending, or until no further stop comes.
func (a *all) collectUntil(left int) {
	collectUntil(a.t, left, a.wait, a.keep)
	if n := a.t.Pending(); n > left {
		a.stuck = n
	} else {
		a.stuck = min(a.stuck, n)
	}
}

// AllUnstopped is AllUntil without stopping any thread.
func AllUnstopped(t *Tracer, threads []Subject, each func(*look.Look, Outcome)) {
	snap := new(look.Look)
	for _, th := range threads {
		if t.enough() {
			return
		}
		snap.Reset()
		each(snap, t.LookUnstopped(th.TID, th.Hint, snap))
	}
}

func (t *Tracer) enough() bool { return t.Enough != nil && t.Enough() }

// collectAll hands over the looks of stops that have come, and reports whether there were any.
func collectAll(t *Tracer, each func(*look.Look, Outcome)) (some bool) {
	for {
		snap, o, ok := t.Collect()
		if !ok {
			return some
		}
		some = true
		each(snap, o)
	}
}

// collectUntil waits until no more than left stops are pending, or until no further stop comes for the time wait. If no
// pending thread wants a CPU, it waits only for lastWait.
func collectUntil(t *Tracer, left int, wait time.Duration, each func(*look.Look, Outcome)) {
	var ts unix.Timespec
	now := Monotonic()
	came, end := now, now+int64(max(maxWaits*wait, maxWait))
	for asked := now; now < end; now = Monotonic() {
		if collectAll(t, each) {
			came, asked = now, now
		}
		if t.Pending() <= left || t.enough() || now-came >= int64(max(wait, lastWait)) {
			return
		}
		if now-asked >= int64(lastWait) {
			if !t.pendingWantCPU() {
				return
			}
			asked = now
		}
		ts = unix.NsecToTimespec(now + int64(t.Patience()))
		SleepUntil(&ts) // not Go's sleep, which needs a CPU for another thread to end it
	}
}

// endWait is how long the end of a recording waits for threads that have no CPU to stop on.
const endWait = time.Second

// CollectRest collects pending stops for a while, and then gives up the others.
func (t *Tracer) CollectRest(each func(*look.Look, Outcome)) {
	collectUntil(t, 0, endWait, each)
	t.Abandon(each)
}
