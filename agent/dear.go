//go:build linux

package agent

import (
	"fmt"
	"time"

	"goprof/sampler"
)

// goprof cannot make the hits of an event cheaper. So an event that costs too much in a JVM is dropped. A program may
// throw many exceptions at its start and few later, so the event is tried again, at first after a minute.

// hitCost is an upper bound of what a probe's hit costs its thread: the breakpoint, the BPF program and one step over
// the instruction. 0.63 us were measured (docs/evidence/events.md).
const hitCost = time.Microsecond

const (
	// dearAgain is the first delay before a dropped event is tried again. The delay doubles up to dearSeldom.
	dearAgain, dearSeldom = time.Minute, time.Hour
	// tolerable is how long an event must be recorded until its earlier drops are forgotten.
	tolerable = 10 * time.Minute
)

// dropping extends Control for the recording of an event.
type dropping interface {
	Drop()  // ends the recording
	Again() // begins the recording again, once it has ended
}

func hitsOf(s *sampler.Stats) (n int64) {
	for i := range s.Events {
		n += int64(s.Events[i].Hits)
	}
	return n
}

// dropDear ends the recording of an event if its hits alone have cost more than half of the budget twice in a row. Once
// is not enough, because a program may throw many exceptions for a moment. Once is enough if the event was dropped
// before. Fewer samples would not help: each hit costs its thread the breakpoint.
func (b *budget) dropDear(a *Agent, g *guest, passed time.Duration, now time.Time) {
	if b.max == 0 {
		return
	}
	for _, r := range g.record.beside {
		hits, over := r.hits, passed
		if r.drops > 0 { // it may have begun again since
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

// tryDear begins one dropped event again if its delay is over and the budget allows an attachment. To begin an event
// costs about as much as to attach.
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

// patience returns the delay until an event that is dropped now is tried again.
func (r *record) patience() time.Duration { return min(dearAgain<<min(r.drops, 8), dearSeldom) }

// postpone extends the delay of a dropped event that could not be begun again, as if it had been dropped again.
func (r *record) postpone(now time.Time) {
	if r.dropped {
		r.again = now.Add(r.patience())
		r.drops++
	}
}

// resume notes that a dropped event is recorded again.
func (r *record) resume(now time.Time) {
	if r.dropped {
		r.dropped, r.dear, r.hits, r.counted, r.again = false, false, 0, lookCounts{}, now
	}
}
