//go:build linux

package agent

import (
	"fmt"
	"time"

	"goprof/sampler"
)

// goprof cannot lower the cost of an event's hits. So an event of a JVM that costs too much is dropped. A program that
// begins may throw many exceptions, and few later: so the event is tried again, after a minute at first.

// hitCost is what a hit of a probe costs its thread at most: the breakpoint, the BPF program and one step over the
// instruction. 0.63 us were measured (docs/evidence/events.md).
const hitCost = time.Microsecond

const (
	// dearAgain is how soon an event that was dropped is tried again, at first; then after twice as long, up to
	// dearSeldom.
	dearAgain, dearSeldom = time.Minute, time.Hour
	// tolerable is how long an event has to be recorded until it is no longer known as one that was dropped.
	tolerable = 10 * time.Minute
)

// dropping is what the agent asks of the recording of an event, beside Control.
type dropping interface {
	Drop()  // ends it
	Again() // begins it again, once it has ended
}

func hitsOf(s *sampler.Stats) (n int64) {
	for i := range s.Events {
		n += int64(s.Events[i].Hits)
	}
	return n
}

// dropDear ends the recording of an event if its hits alone have cost more than half of the budget twice in a row. Once
// is not enough: a program may throw many exceptions for a moment. Fewer samples would not help, because each hit costs
// its thread the breakpoint. If the event was dropped before, once is enough.
func (b *budget) dropDear(a *Agent, g *guest, passed time.Duration, now time.Time) {
	if b.max == 0 {
		return
	}
	for _, r := range g.record.beside {
		hits, over := r.hits, passed
		if r.drops > 0 { // it may have begun again meanwhile
			over = min(over, max(now.Sub(r.again), beatEvery))
		}
		r.hits = 0
		dear := float64(hits)*float64(hitCost) > b.max/2*b.cpus*float64(over)
		if r.dear, dear = dear, dear && (r.dear || r.drops > 0); r.dropped || !dear {
			continue
		}
		d, is := r.control.(dropping)
		if !is {
			continue
		}
		d.Drop()
		wait := r.patience()
		r.dropped, r.again = true, now.Add(wait)
		r.drops++
		a.metrics.dropEvent(r.event.Name)
		a.refuseEvent(g, r.event.Name, fmt.Sprintf("it happens %.0f times a second, and these breakpoints alone would "+
			"cost more than half of max-cpu. It is tried again in %v", float64(hits)/over.Seconds(), wait), now)
	}
}

// tryDear begins one event again that was dropped and has waited, if the budget allows an attachment: to begin an event
// costs about as much.
func (a *Agent) tryDear(now time.Time) {
	for _, g := range a.guests {
		if g.state != recorded {
			continue
		}
		for _, r := range g.record.beside {
			switch {
			case !r.dropped && r.drops > 0 && now.Sub(r.again) > tolerable:
				r.drops = 0
			case r.dropped && !r.again.IsZero() && now.After(r.again) && a.budget.mayAttach(now):
				r.again = time.Time{}
				a.metrics.retryEvent(r.event.Name)
				r.control.(dropping).Again()
				return
			}
		}
	}
}

// patience is how long an event that is dropped now waits until it is tried again.
func (r *record) patience() time.Duration { return min(dearAgain<<min(r.drops, 8), dearSeldom) }

// postpone has an event that was dropped, and could not be begun again, wait as if it had been dropped again.
func (r *record) postpone(now time.Time) {
	if r.dropped {
		r.again = now.Add(r.patience())
		r.drops++
	}
}

// resume takes in that an event which was dropped is recorded again.
func (r *record) resume(now time.Time) {
	if r.dropped {
		r.dropped, r.dear, r.hits, r.counted, r.again = false, false, 0, lookCounts{}, now
	}
}
