//go:build linux

package stops

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// Run is what the engines that stop threads have in common: a Tracer on OS threads of its own, the stops that come
// late, and the end of a run. Each engine decides which threads to look at, and keeps the account of a look.
type Run struct {
	Ticks    Ticks
	Queue    *sampler.Queue
	Tracer   *ptrace.Tracer
	Proc     *procfs.Dir
	progress *sampler.Progress
	Cancel   <-chan struct{}

	// Late takes the outcome of a look whose stop has come late, or never will.
	Late func(*look.Look, ptrace.Outcome)
	// Sum is the engine's account so far.
	Sum func() sampler.Stats
	// Hand hands a look over.
	Hand func(*look.Look)

	Stats       sampler.Stats
	maxOverhead float64
	pace        *atomic.Int64
	thrift      thrift
	Began       int64
	cpuBefore   time.Duration // of the OS threads before
	cpuAtFrom   time.Duration // of this OS thread, when the run got it: Go may have used it before
	ts          unix.Timespec
	denied      int // in a row
	Failed      error
	Cancelled   bool
	Preempters  *ptrace.Preempters // that may call the sampling thread; nil: none
	Rest        int64              // they may not before that moment
	Called      int                // number of the preempter that has called, -1: none
	taken       bool               // a look has succeeded since the last sleep
}

// RunInShifts calls loop until the run is over, and settle at its end. Each call of loop has an OS thread of its own,
// which ends when goprof is to be suspended. loop holds ticks until sleep returns false or over returns true.
func (c *Run) RunInShifts(loop, settle func()) (sampler.Stats, error) {
	c.Began = ptrace.Monotonic() // the preparations of an engine may take a while
	c.Ticks.Begin(c.Began, c.Ticks.Interval)
	for again := true; again; {
		ptrace.OnOwnThread(func() {
			c.Tracer.ChangeOSThread()
			c.cpuAtFrom = sampler.ThreadCPU()
			loop()
			c.Tracer.CollectRest(c.Late)
			c.Queue.HandOver()
			if again = !c.Over(); !again {
				settle()
				c.Stats = c.Sum()
			}
			c.cpuBefore += sampler.ThreadCPU() - c.cpuAtFrom
		})
	}
	return c.Stats, c.Failed
}

// Over reports whether no more looks are wanted, or no more can be made.
func (c *Run) Over() bool { return c.Cancelled || c.Stats.Ended || c.Failed != nil }

// NextTick moves on to the next tick that is not yet over.
func (c *Run) NextTick() { c.Stats.Skipped += c.Ticks.skipMissed(ptrace.Monotonic()) }

// LengthenInterval lengthens the interval if pauses cost too much. With a Pace, it takes the interval from there.
func (c *Run) LengthenInterval() {
	if c.pace != nil {
		if d := time.Duration(c.pace.Load()); d >= sampler.MinInterval && d != c.Ticks.Interval {
			c.Ticks.Begin(ptrace.Monotonic(), d)
		}
		return
	}
	longer := c.thrift.interval(c.maxOverhead, c.Ticks.Interval, &c.Tracer.Pauses)
	if longer != c.Ticks.Interval {
		c.Ticks.Begin(ptrace.Monotonic(), longer)
	}
}

// MaxNap bounds how long a sleep can go on when the run is cancelled.
const MaxNap = 50 * int64(time.Millisecond)

// Sleep waits until the deadline or the call of a preempter, and looks after pending stops and questions meanwhile. It
// returns false when the run is over, or goprof is to be suspended.
func (c *Run) Sleep(deadline int64) bool {
	// A look at a thread that a preempter has met has told that the process is there. If the kernel notes nothing
	// (NoNotes), a preempter calls for any process, and there may be no thread to look at.
	asked := c.Called >= 0 && c.taken
	c.taken = false
	for c.Called = -1; ; asked = false {
		select {
		case <-c.Cancel:
			c.Cancelled = true
			return false
		default:
		}
		if !asked && c.Proc.Ended() {
			c.Stats.Ended = true
		}
		if c.Over() || ptrace.SuspendWanted() {
			return false
		}
		c.Collect()
		c.progress.Answer(c.Sum)
		now := ptrace.Monotonic()
		if now >= deadline {
			return true
		}
		until := min(deadline, now+MaxNap)
		if c.Tracer.Pending() > 0 {
			until = min(until, now+int64(c.Tracer.Patience()))
		}
		if c.Preempters != nil && now >= c.Rest {
			if c.await(now, until) {
				return true
			}
			continue
		}
		if c.Preempters != nil {
			until = min(until, c.Rest)
		}
		c.Queue.HandOverBefore(until)
		c.ts = unix.NsecToTimespec(until)
		ptrace.SleepUntil(&c.ts)
		if ptrace.Monotonic() >= deadline && c.Tracer.Pending() == 0 {
			return true
		}
	}
}

// await sleeps until a preempter calls, or that moment. It returns true at once if a preempter has called: a thread
// stands still.
func (c *Run) await(now, until int64) bool {
	c.Queue.HandOverBefore(max(now, c.Preempters.Next()))
	c.Preempters.Hasten(c.Tracer.Pending() > 0)
	c.Called = c.Preempters.Await(min(until, c.Queue.HandOverAt()))
	if c.Called < 0 {
		return false
	}
	if c.Tracer.Pending() > 0 {
		c.Tracer.BoundTo(ptrace.CurrentCPU())
		c.Collect()
	}
	return true
}

// Collect takes the stops that have come.
func (c *Run) Collect() {
	for c.Tracer.Pending() > 0 {
		snap, o, ok := c.Tracer.Collect()
		if !ok {
			return
		}
		c.Late(snap, o)
	}
}

// maxDenied looks in a row that are not permitted end the run.
const maxDenied = 10

// CheckEnd learns from a look's outcome whether further looks make sense. A look without a stop may succeed although no
// thread may be stopped.
func (c *Run) CheckEnd(o ptrace.Outcome, unstopped bool) {
	switch o {
	case ptrace.Taken:
		if c.taken = true; !unstopped {
			c.denied = 0
		}
	case ptrace.ProcessGone:
		c.Stats.Ended = true
	case ptrace.NotPermitted:
		if c.denied++; c.denied == maxDenied {
			c.Failed = &sampler.NotPermittedError{PID: c.Proc.PID}
		}
	case ptrace.Silent, ptrace.ReadLate, ptrace.Failed:
		c.Failed = c.Tracer.ReadErr()
	}
}

// SoFar returns what the run has counted.
func (c *Run) SoFar() sampler.Stats {
	s := c.Stats
	s.Pauses, s.Holds = c.Tracer.Pauses, c.Tracer.Holds()
	s.Silent = c.Tracer.Silent()
	s.Interval = c.Ticks.Interval
	s.Wall = time.Duration(ptrace.Monotonic() - c.Began)
	s.CPU = c.cpuBefore + sampler.ThreadCPU() - c.cpuAtFrom
	return s
}

// Trace is RunEngine of an engine that has a Tracer. The process's folder and the Tracer are open while run lasts. Late
// and Sum of the Run are still to be set.
func Trace(ctx context.Context, e *sampler.Base, cfg sampler.Config, q *sampler.Queue,
	run func(Run, sampler.Config) (sampler.Stats, error)) (sampler.Stats, error) {
	return e.RunEngine(cfg, q, func() (sampler.Stats, error) {
		proc := procfs.OpenDir(e.PID)
		defer proc.Close()
		if !proc.Exists() {
			return sampler.Stats{}, sampler.ErrNoProcess
		}
		t := ptrace.NewTracer(e.PID, e.CPU)
		defer t.Close()
		t.After, t.Trail, t.Contexts = cfg.After, cfg.Trail, cfg.Contexts
		if cfg.Memory != nil {
			t.Serve(cfg.Memory)
		}
		if cfg.MaxStack > 0 {
			t.StackLimit = cfg.MaxStack
		}
		c := Run{Queue: q, Hand: q.Put, Tracer: t, Proc: proc, progress: &e.Progress, Cancel: ctx.Done(),
			maxOverhead: cfg.MaxOverhead, pace: cfg.Pace}
		c.Began = ptrace.Monotonic()
		c.Ticks = newTicks(cfg.Interval, cfg.NoJitter, c.Began)
		return run(c, cfg)
	})
}
