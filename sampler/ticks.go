//go:build linux

package sampler

import (
	"math/rand/v2"
	"time"
)

// ticks is a schedule. Ticks are an interval apart, and each falls anywhere within its time, so that no program runs in
// step with us. A missed tick is counted and never made up for.
type ticks struct {
	interval time.Duration
	exact    bool // at exact multiples: for tests
	rng      *rand.Rand
	start    int64 // of the ticks that are an interval apart
	number   int64 // of the next tick
}

func newTicks(interval time.Duration, exact bool, now int64) ticks {
	t := ticks{exact: exact, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	t.begin(now, interval)
	return t
}

// begin counts ticks from now on, an interval apart.
func (t *ticks) begin(now int64, interval time.Duration) {
	t.start, t.number, t.interval = now, 0, interval
}

// at is when the time of the next tick begins.
func (t *ticks) at() int64 { return t.start + t.number*int64(t.interval) }

// randomWithin is a random moment within a time of that width.
func (t *ticks) randomWithin(width int64) int64 {
	if t.exact {
		return 0
	}
	return t.rng.Int64N(width)
}

// skipMissed moves on to the next tick that is not yet over, and returns how many ticks lie in between. They were
// missed because a tick took too long, or because goprof was suspended.
func (t *ticks) skipMissed(now int64) (missed int64) {
	t.number++
	if current := (now - t.start) / int64(t.interval); current > t.number {
		missed, t.number = current-t.number, current
	}
	return missed
}
