//go:build linux

package sampler

import (
	"math/rand/v2"
	"time"
)

// ticks is a schedule. Ticks are step apart, and each falls anywhere within its time, so that no program runs in step
// with us. What is missed is counted and never made up for.
type ticks struct {
	interval time.Duration // between two samples of a thread; it may have several ticks, see planVisit
	exact    bool          // at exact multiples: for tests
	rng      *rand.Rand
	start    int64 // of the ticks that are step apart
	step     int64
	number   int64 // of the next tick
	missed   int64 // ticks that are not yet a whole interval's
}

func newTicks(interval time.Duration, exact bool, now int64) ticks {
	t := ticks{interval: interval, exact: exact, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	t.begin(now, int64(interval))
	return t
}

// begin counts ticks from now on, so far apart.
func (t *ticks) begin(now, step int64) { t.start, t.number, t.step = now, 0, step }

// at is when the time of the next tick begins.
func (t *ticks) at() int64 { return t.start + t.number*t.step }

// randomWithin is a moment within so much time.
func (t *ticks) randomWithin(width int64) int64 {
	if t.exact {
		return 0
	}
	return t.rng.Int64N(width)
}

// skipMissed moves on to the next tick that is not yet over, and returns how many intervals lie in between: missed
// because a tick took too long, or because goprof was suspended.
func (t *ticks) skipMissed(now int64) (intervals int64) {
	t.number++
	if current := (now - t.start) / t.step; current > t.number {
		t.missed += current - t.number
		t.number = current
		each := max(int64(t.interval)/t.step, 1)
		intervals = t.missed / each
		t.missed %= each
	}
	return intervals
}
