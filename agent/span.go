//go:build linux

package agent

import (
	"math"
	"sync/atomic"
	"time"
)

// countedTime is the time in which samples count. An agent that takes over from another one attaches to JVMs before
// that. The other agent ends when this one begins, so exactly one agent counts each moment.
type countedTime struct {
	from, until atomic.Int64 // ns since 1970
}

func newSpan() *countedTime {
	s := &countedTime{}
	s.until.Store(math.MaxInt64)
	return s
}

func (s *countedTime) has(at int64) bool { return at >= s.from.Load() && at < s.until.Load() }

// within returns the part of a batch's time that counts.
func (s *countedTime) within(from, to time.Time) (time.Time, time.Time) {
	if at := s.from.Load(); from.UnixNano() < at {
		from = time.Unix(0, at)
	}
	if at := s.until.Load(); to.UnixNano() > at {
		to = time.Unix(0, at)
	}
	return from, to
}

// Rehearse lets the agent find and attach to JVMs without samples until Begin. Call Rehearse before Run.
func (a *Agent) Rehearse() {
	a.rehearses = true
	a.span.from.Store(math.MaxInt64)
}

// Begin ends the rehearsal: samples from that moment on count. It may be called from any goroutine.
func (a *Agent) Begin(at time.Time) {
	a.span.from.Store(at.UnixNano())
	a.begins <- struct{}{}
}

// EndAt sets the moment from which samples no longer count. It may be called from any goroutine. Run goes on.
func (a *Agent) EndAt(at time.Time) { a.span.until.Store(at.UnixNano()) }

// Settled is closed once a few beats have passed and no JVM waits for an attachment.
func (a *Agent) Settled() <-chan struct{} { return a.settled }

// perform ends the rehearsal.
func (a *Agent) perform() {
	a.rehearses = false
	for _, g := range a.guests {
		if g.record != nil {
			for _, r := range g.record.all() {
				a.budget.govern(r)
			}
		}
	}
}

// settleBeats is how many beats an agent takes until it knows who is busy.
const settleBeats = 3

// noteSettled is called after each beat. delayed is the count of delays before the beat.
func (a *Agent) noteSettled(delayed int64) {
	if a.beats++; a.beats < settleBeats || a.metrics.delayed.Load() != delayed {
		return
	}
	for _, g := range a.guests {
		if g.state == opening {
			return
		}
	}
	a.settleOnce.Do(func() { close(a.settled) })
}
