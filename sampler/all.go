//go:build linux

package sampler

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/target"
)

// lastWait is how long stops that have not come are waited for in the end.
const lastWait = 100 * time.Millisecond

// Target is a thread to look at.
type Target struct {
	TID  int
	Hint Hint
}

// All looks once at each thread, for a dump. each is called for every one, with a
// snapshot that is valid during the call. Threads whose stop does not come in 100 ms are
// TimedOut: let the OS thread end afterwards, as Tracer says.
func All(t *Tracer, threads []Target, each func(*target.Snapshot, Outcome)) {
	snap := new(target.Snapshot)
	for _, th := range threads {
		o := t.Look(th.TID, th.Hint, snap)
		if o == Pending {
			snap = new(target.Snapshot) // the Tracer has the old one now
			continue
		}
		each(snap, o)
		collectAll(t, each)
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

func collectAll(t *Tracer, each func(*target.Snapshot, Outcome)) {
	for {
		snap, o, ok := t.Collect()
		if !ok {
			return
		}
		each(snap, o)
	}
}

// patience collects what is pending for a while and gives up the rest.
func patience(t *Tracer, each func(*target.Snapshot, Outcome)) {
	var ts unix.Timespec
	end := monotonic(&ts) + int64(lastWait)
	for collectAll(t, each); t.Pending() > 0 && monotonic(&ts) < end; collectAll(t, each) {
		time.Sleep(t.Patience())
	}
	t.Abandon(each)
}
