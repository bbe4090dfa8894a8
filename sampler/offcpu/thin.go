//go:build linux

package offcpu

import "time"

// A program may begin tens of thousands of waits a second, more than can be walked. If goprof tried, it would use a
// whole CPU and still lose waits at random. So goprof leaves out some of the short waits, as with events
// (events/rate.go). A wait that is as long as a limit, or longer, always counts, with its own time. For a shorter wait
// goprof draws a lot: the longer the wait, the likelier it counts. A wait that counts then stands for the limit's time.
// So the time and the number of waits of each stack are right on average. The limit follows goprof's load.
//
// By lots alone, the error of a thread's time would grow: after waits of T in all, to sqrt(T x limit). So goprof keeps
// for each thread how much of its time is not counted yet (offThread.owed; below 0 if too much is counted). The next
// wait that counts also gets that time. The owed time is 0 on average, and does not depend on the next lot. So the
// stacks stay right on average, and the error of a thread is a few limits at most.

const (
	thinEvery = int64(20 * time.Millisecond)
	// thinBehind: the walker is behind if more than one in so many looks waits for its walk.
	thinBehind = 8
	// thinShare and thinCalm are shares of a CPU, in percent. Above thinShare goprof does too much: above 50 it would
	// also lose its priority (session, aheadShare). Below thinCalm it may do more.
	thinShare, thinCalm = 40, 25
	// thinFirst and thinMost bound the limit.
	thinFirst, thinMost = 40 * time.Microsecond, 100 * time.Millisecond
)

// thinning has the limit below which waits count by lot.
type thinning struct {
	limit, longest time.Duration // 0: each wait counts
	checkedAt      int64
	ownCPU         int64
}

// standsFor returns how many waits a wait of this length stands for, and how much time; 0 if the wait does not count.
// lot is a random number from 0 to 1. owed is the thread's offThread.owed.
func (t *thinning) standsFor(length time.Duration, lot float64, owed *time.Duration) (waits int64, of time.Duration) {
	if length >= t.limit {
		return 1, length
	}
	likely := float64(length) / float64(t.limit)
	if lot < likely {
		waits = int64(1/likely + lot/likely) // lot/likely is a lot again: it rounds up or down
		of = max(t.limit+*owed, 0)           // below 0 only if the limit was higher before
	}
	*owed += length - of
	return waits, of
}

// fit adapts the limit at each tick. behind: many looks wait for their walk. used is the CPU time of goprof.
func (t *thinning) fit(now int64, behind bool, used int64) {
	if t.checkedAt == 0 {
		t.checkedAt, t.ownCPU = now, used
	}
	window := now - t.checkedAt
	if window < thinEvery {
		return
	}
	share := (used - t.ownCPU) * 100 / window
	t.checkedAt, t.ownCPU = now, used
	switch {
	case behind || share > thinShare:
		t.limit = min(max(2*t.limit, thinFirst), thinMost)
		t.longest = max(t.longest, t.limit)
	case share < thinCalm && t.limit > 0:
		if t.limit /= 2; t.limit < thinFirst {
			t.limit = 0
		}
	}
}
