//go:build linux

package sampler

import (
	"sync/atomic"
	"time"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler/ptrace"
)

// progress tells, from any goroutine, what an engine has done so far.
type progress struct {
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

func newProgress() progress {
	return progress{asked: make(chan chan Stats, 1), done: make(chan struct{})}
}

// Stats is what happened so far, from any goroutine, once Run has been called. Stats waits for the engine's next look
// around, for 50 ms at most. Perf is woken up for it. Where goprof is suspended, Stats waits until goprof goes on, and
// also while goprof waits for late stops before it is suspended.
func (p *progress) Stats() Stats {
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

// Latest is what was known of the run at one of its last looks around, from any goroutine. It does not wait.
func (p *progress) Latest() Stats {
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

// answer tells how far the run is, if somebody asks.
func (p *progress) answer(sum func() Stats) {
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

// runEngine is an engine's Run, from its beginning to its end.
func (p *progress) runEngine(cfg Config, q *Queue, run func() (Stats, error)) (_ Stats, err error) {
	defer close(q.full)
	defer close(p.done)
	if cfg.Interval < MinInterval {
		return Stats{}, ErrInterval
	}
	p.last, err = run()
	return p.last, err
}

// runTraced is runEngine of an engine that has a Tracer. The process's folder and the Tracer are open while run lasts.
func (p *progress) runTraced(pid int, cpu *arch.CPU, cfg Config, q *Queue,
	run func(*procfs.Dir, *ptrace.Tracer) (Stats, error)) (Stats, error) {
	return p.runEngine(cfg, q, func() (Stats, error) {
		proc := procfs.OpenDir(pid)
		defer proc.Close()
		if !proc.Exists() {
			return Stats{}, ErrNoProcess
		}
		t := ptrace.NewTracer(pid, cpu)
		defer t.Close()
		return run(proc, t)
	})
}
