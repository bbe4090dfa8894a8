//go:build linux

package offcpu

import "time"

// A program may begin tens of thousands of waits a second, more than can be walked. If goprof tried, it would use a
// whole CPU and still lose waits at random. So it leaves out some of the short waits, as it does with events
// (events/rate.go). A wait that is as long as a limit, or longer, always counts, with its own time. For a shorter wait
// goprof draws a lot: the longer the wait, the likelier it counts. It then stands for the limit's time. So the time of
// each stack is right on average, and so is the number of its waits. The limit follows goprof's load.
//
// By lots alone, the time of a thread would be off by more and more: after waits of T in all, by sqrt(T x limit). So
// goprof knows for each thread how much time of its waits is not counted yet (offThread.owed), or is counted too much.
// The next wait that counts takes that over. On average it is nothing, and it does not depend on the next lot. So the
// stacks stay right on average, and a thread is off by some limit at most.

const (
	thinEvery = int64(20 * time.Millisecond)
	// thinBehind: one in so many looks may wait for its walk.
	thinBehind = 8
	// thinShare and thinCalm are parts of a CPU, in percent. Above the one goprof does too much: above 50 it would also
	// lose its priority (session, aheadShare). Below the other it may do more.
	thinShare, thinCalm = 40, 25
	// thinFirst and thinMost bound the limit.
	thinFirst, thinMost = 40 * time.Microsecond, 100 * time.Millisecond
)

// thinning is the limit below which waits are thinned out.
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
		of = max(t.limit+*owed, 0)           // less than 0 only where the limit was higher before
	}
	*owed += length - of
	return waits, of
}

// fit adapts the limit in each tick. behind says that many looks wait for their walk. used is the CPU time of goprof.
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
