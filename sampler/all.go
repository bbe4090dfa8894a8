//go:build linux

package sampler

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/target"
)

const (
	// lastWait is how long it may take until the next one comes of the stops that are waited for.
	lastWait = 100 * time.Millisecond
	// maxWait bounds a wait for all of them: of thousands of threads each needs the CPU for a moment to stop.
	maxWait = 10 * time.Second
	// mostPending is how many threads are told to stop before the first of them have. More would
	// stand still for longer once they have stopped.
	mostPending = 32
)

// Target is a thread to look at.
type Target struct {
	TID  int
	Hint Hint
}

// All looks once at each thread, for a dump. each is called for every one, with a
// snapshot that is valid during the call. Threads are TimedOut when for 100 ms none of those that are
// waited for has stopped: let the OS thread end afterwards, as Tracer says.
func All(t *Tracer, threads []Target, each func(*target.Snapshot, Outcome)) {
	snap := new(target.Snapshot)
	most := mostPending
	for _, th := range threads {
		o := t.Look(th.TID, th.Hint, snap)
		if o == Pending {
			snap = new(target.Snapshot) // the Tracer has the old one now
		} else {
			each(snap, o)
		}
		if collectAll(t, each); t.Pending() > most {
			collectUntil(t, most/2, each)
			most = max(most, t.Pending()+mostPending) // what has not come may never do
		}
	}
	patience(t, each)
}

// AllUnstopped is All without stopping any thread.
func AllUnstopped(t *Tracer, threads []Target, each func(*target.Snapshot, Outcome)) {
	snap := new(target.Snapshot)
	for _, th := range threads {
		each(snap, t.LookUnstopped(th.TID, th.Hint, snap))
	}
}

// collectAll hands over the stops that have come, and reports whether there were any.
func collectAll(t *Tracer, each func(*target.Snapshot, Outcome)) (some bool) {
	for {
		snap, o, ok := t.Collect()
		if !ok {
			return some
		}
		some = true
		each(snap, o)
	}
}

// collectUntil waits for stops until no more than left are pending, or none comes any more.
func collectUntil(t *Tracer, left int, each func(*target.Snapshot, Outcome)) {
	var ts unix.Timespec
	now := monotonic(&ts)
	for last, end := now+int64(lastWait), now+int64(maxWait); now < min(last, end); now = monotonic(&ts) {
		if collectAll(t, each) {
			last = now + int64(lastWait)
		}
		if t.Pending() <= left {
			return
		}
		time.Sleep(t.Patience())
	}
}

// patience collects what is pending for a while and gives up the rest.
func patience(t *Tracer, each func(*target.Snapshot, Outcome)) {
	collectUntil(t, 0, each)
	t.Abandon(each)
}
