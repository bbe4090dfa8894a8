//go:build linux

package sampler

import (
	"sync/atomic"
	"time"
)

// Progress says, from any goroutine, what an engine has done so far.
type Progress struct {
	asked chan chan Stats
	wake  func()        // ends a long sleep of the sampling thread; nil: it does not sleep for long
	done  chan struct{} // closed when the run has ended
	last  Stats         // the Stats of a run that has ended

	latest   atomic.Pointer[Stats] // as of latestAt, for when the run hangs
	latestAt time.Time
}

// latestEvery is how old latest may get. hangsAfter is how long Stats waits for an answer.
const (
	latestEvery = time.Second
	hangsAfter  = 5 * time.Second
)

// NewProgress is that of a run that has not begun. wake ends a long sleep of the sampling thread; nil: it does not
// sleep for long.
func NewProgress(wake func()) Progress {
	return Progress{asked: make(chan chan Stats, 1), wake: wake, done: make(chan struct{})}
}

// IsAsked reports whether a goroutine waits for an Answer.
func (p *Progress) IsAsked() bool { return len(p.asked) > 0 }

// Stats returns what happened so far, from any goroutine, once Run has been called. The engine answers between two
// looks; Stats waits for that, 50 ms at most. It wakes the perf engine up. While goprof is suspended, or waits for late
// stops before it is suspended, Stats waits until goprof goes on.
func (p *Progress) Stats() Stats {
	reply, hangs := make(chan Stats, 1), time.After(hangsAfter)
	select {
	case p.asked <- reply:
	case <-p.done:
		return p.last
	case <-hangs:
		return p.Latest()
	}
	if p.wake != nil {
		p.wake()
	}
	select {
	case s := <-reply:
		return s
	case <-p.done:
		return p.last
	case <-hangs: // the sampling thread hangs in the kernel
		return p.Latest()
	}
}

// Latest returns what was known of the run at one of its last looks around, from any goroutine. It does not wait.
func (p *Progress) Latest() Stats {
	select {
	case <-p.done:
		return p.last
	default:
	}
	if s := p.latest.Load(); s != nil {
		return *s
	}
	return Stats{}
}

// Answer says how far the run is, if a goroutine asks.
func (p *Progress) Answer(sum func() Stats) {
	select {
	case reply := <-p.asked:
		reply <- sum()
	default:
		if now := time.Now(); now.Sub(p.latestAt) > latestEvery {
			s := sum()
			p.latestAt = now
			p.latest.Store(&s)
		}
	}
}

// RunEngine returns an engine's Run, from its beginning to its end.
func (p *Progress) RunEngine(cfg Config, q *Queue, run func() (Stats, error)) (_ Stats, err error) {
	defer close(q.full)
	defer close(p.done)
	if cfg.Interval < MinInterval {
		return Stats{}, ErrInterval
	}
	if cfg.Lean {
		q.beLean()
	}
	p.last, err = run()
	return p.last, err
}
