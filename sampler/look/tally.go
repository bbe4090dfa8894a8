package look

import (
	"sync/atomic"
	"time"
)

// Tally counts how often one look at a thread counts, and for how long: while the thread does not
// move, what was seen is still so. The sampler adds, whoever walked the look reads, at any time.
type Tally struct {
	looks, time       atomic.Int64
	readyAt, readyFor atomic.Int64
	last              atomic.Int64
	void              atomic.Bool
	ended             atomic.Uint32

	// Rest is what the kernel had charged the thread when it was seen at rest; nil if it was not. It is set before
	// the Tally is shared.
	Rest *Charge
}

// Charge is what /proc/PID/task/TID/schedstat says: nanoseconds on a CPU, and how often the thread was given one.
// While it is the same the thread has not run.
type Charge struct{ Ran, Turns uint64 }

// Add lets the look count n times more: at when (CLOCK_MONOTONIC) the thread had not moved.
func (t *Tally) Add(n int64, d time.Duration, when int64) {
	t.last.Store(when)
	t.looks.Add(n)
	t.time.Add(int64(d))
}

// Last is when the thread was last known not to have moved.
func (t *Tally) Last() int64 { return t.last.Load() }

// Ready says that at n of the times that were counted the thread had been woken and waited for a CPU.
func (t *Tally) Ready(n int64, d time.Duration) {
	t.readyAt.Add(n)
	t.readyFor.Add(int64(d))
}

// Count is how often the look counts by now, and for how long; Ready's part is not in it.
func (t *Tally) Count() (looks int64, d time.Duration) {
	return t.looks.Load() - t.readyAt.Load(), time.Duration(t.time.Load() - t.readyFor.Load())
}

// CountReady is Ready's part.
func (t *Tally) CountReady() (looks int64, d time.Duration) {
	return t.readyAt.Load(), time.Duration(t.readyFor.Load())
}

// WaitEnd is how a wait has ended.
type WaitEnd uint32

const (
	GoesOn    WaitEnd = iota // it has not
	Woken                    // a look at the waker follows
	NotAsleep                // the thread was ready to run, and no waker was needed
	TooEarly                 // the wait began before wake-ups were noted
	NotNoted                 // the kernel has noted no waker
	WakerLost                // there was no room for the look at the waker
)

// End says that the wait is over.
func (t *Tally) End(how WaitEnd) { t.ended.Store(uint32(how)) }

// Ended is what End said.
func (t *Tally) Ended() WaitEnd { return WaitEnd(t.ended.Load()) }

// Void asks for another look: this one came to nothing.
func (t *Tally) Void() { t.void.Store(true) }

// IsVoid reports whether Void has been called.
func (t *Tally) IsVoid() bool { return t.void.Load() }
