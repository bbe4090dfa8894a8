//go:build linux

package agent

import (
	"math"
	"sync/atomic"
	"time"
)

// countedTime is the time in which samples count. An agent that takes over from another one attaches to JVMs before its
// counted time begins. The other agent's counted time ends at that moment, so each moment is counted exactly once.
type countedTime struct {
	from, until atomic.Int64 // ns since 1970
}

func newSpan() *countedTime {
	s := &countedTime{}
	s.until.Store(math.MaxInt64)
	return s
}

func (s *countedTime) has(at int64) bool { return at >= s.from.Load() && at < s.until.Load() }

// within returns the part of a batch's time that is counted.
func (s *countedTime) within(from, to time.Time) (time.Time, time.Time) {
	if at := s.from.Load(); from.UnixNano() < at {
		from = time.Unix(0, at)
	}
	if at := s.until.Load(); to.UnixNano() > at {
		to = time.Unix(0, at)
	}
	return from, to
}

// Rehearse lets the agent find JVMs and attach to them, without samples until Begin. Call Rehearse before Run.
func (a *Agent) Rehearse() {
	a.rehearses = true
	a.span.from.Store(math.MaxInt64)
}

// Begin ends the rehearsal. Samples count from that moment on. Any goroutine may call it.
func (a *Agent) Begin(at time.Time) {
	a.span.from.Store(at.UnixNano())
	a.begins <- struct{}{}
}

// EndAt sets the moment from which samples no longer count. Run goes on. Any goroutine may call EndAt.
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

// settleBeats is how many beats an agent needs to know which JVMs are busy.
const settleBeats = 3

// noteSettled is called after each beat. delayed is the number of delayed attachments before the beat.
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
