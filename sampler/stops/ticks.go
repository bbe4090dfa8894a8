//go:build linux

package stops

import (
	"math/rand/v2"
	"time"
)

// Ticks is a schedule. Ticks are an interval apart, and each falls anywhere within its time, so that no program runs in
// step with goprof. A missed tick is counted and never made up for.
type Ticks struct {
	Interval time.Duration
	exact    bool // at exact multiples: for tests
	Rng      *rand.Rand
	start    int64 // of the ticks that are an interval apart
	number   int64 // of the next tick
}

func newTicks(interval time.Duration, exact bool, now int64) Ticks {
	t := Ticks{exact: exact, Rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	t.Begin(now, interval)
	return t
}

// Begin counts ticks from now on, an interval apart.
func (t *Ticks) Begin(now int64, interval time.Duration) {
	t.start, t.number, t.Interval = now, 0, interval
}

// At is when the time of the next tick begins.
func (t *Ticks) At() int64 { return t.start + t.number*int64(t.Interval) }

// RandomWithin is a random moment within a time of that width.
func (t *Ticks) RandomWithin(width int64) int64 {
	if t.exact {
		return 0
	}
	return t.Rng.Int64N(width)
}

// skipMissed moves on to the next tick that is not yet over, and returns how many ticks lie in between. They were
// missed because a tick took too long, or because goprof was suspended.
func (t *Ticks) skipMissed(now int64) (missed int64) {
	t.number++
	if current := (now - t.start) / int64(t.Interval); current > t.number {
		missed, t.number = current-t.number, current
	}
	return missed
}
