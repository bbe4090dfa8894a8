//go:build linux

package sampler

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// capture is what the engines that stop threads have in common: a Tracer on OS threads of our own, the stops that come
// late, and the end of a run. Each engine decides which threads to look at, and keeps the account of a look.
type capture struct {
	ticks    ticks
	q        *Queue
	t        *ptrace.Tracer
	proc     *procfs.Dir
	progress *progress
	cancel   <-chan struct{}

	// late takes the outcome of a look whose stop has come late, or never will.
	late func(*look.Look, ptrace.Outcome)
	// sum is the engine's account so far.
	sum func() Stats
	// hand hands a look over.
	hand func(*look.Look)

	stats       Stats
	maxOverhead float64
	pace        *atomic.Int64
	thrift      thrift
	began       int64
	cpuBefore   time.Duration // of the OS threads that we had before
	cpuAtFrom   time.Duration // of the OS thread that we have now: Go may have used it before
	ts          unix.Timespec
	denied      int // in a row
	failed      error
	cancelled   bool
	heralds     *ptrace.Heralds // that may call us; nil: none
	rest        int64           // they may not before that moment
	called      int             // number of the herald that has called us, -1: none
	taken       bool            // a look has succeeded since the last sleep
}

// newCapture begins a run. late and sum are still to be set.
func newCapture(t *ptrace.Tracer, proc *procfs.Dir, p *progress, cancel <-chan struct{}, cfg Config, q *Queue) capture {
	t.After, t.Trail, t.Contexts = cfg.After, cfg.Trail, cfg.Contexts
	if cfg.Memory != nil {
		t.Serve(cfg.Memory)
	}
	if cfg.MaxStack > 0 {
		t.StackLimit = cfg.MaxStack
	}
	c := capture{q: q, hand: q.put, t: t, proc: proc, progress: p, cancel: cancel, maxOverhead: cfg.MaxOverhead,
		pace: cfg.Pace}
	c.began = ptrace.Monotonic()
	c.ticks = newTicks(cfg.Interval, cfg.NoJitter, c.began)
	return c
}

// runInShifts calls loop until the run is over, and settle at its end. Each call of loop has an OS thread of its own,
// which ends when goprof is to be suspended. loop holds ticks until sleep returns false or over returns true.
func (c *capture) runInShifts(loop, settle func()) (Stats, error) {
	for again := true; again; {
		ptrace.OnOwnThread(func() {
			c.t.ChangeOSThread()
			c.cpuAtFrom = threadCPU()
			loop()
			c.t.CollectRest(c.accountLate)
			c.q.handOver()
			if again = !c.over(); !again {
				settle()
				c.stats = c.sum()
			}
			c.cpuBefore += threadCPU() - c.cpuAtFrom
		})
	}
	return c.stats, c.failed
}

// over reports whether no more looks are wanted, or no more can be made.
func (c *capture) over() bool { return c.cancelled || c.stats.Ended || c.failed != nil }

// nextTick moves on to the next tick that is not yet over.
func (c *capture) nextTick() { c.stats.Skipped += c.ticks.skipMissed(ptrace.Monotonic()) }

// lengthenInterval makes the interval longer if pauses cost more than they may.
func (c *capture) lengthenInterval() {
	if c.pace != nil {
		if d := time.Duration(c.pace.Load()); d >= MinInterval && d != c.ticks.interval {
			c.ticks.begin(ptrace.Monotonic(), d)
		}
		return
	}
	longer := c.thrift.interval(c.maxOverhead, c.ticks.interval, &c.t.Pauses)
	if longer != c.ticks.interval {
		c.ticks.begin(ptrace.Monotonic(), longer)
	}
}

// maxNap bounds how long a sleep can go on when the run is cancelled.
const maxNap = 50 * int64(time.Millisecond)

// sleep waits until the deadline or the call of a herald, and looks after pending stops and questions meanwhile. It
// returns false when the run is over, or goprof is to be suspended.
func (c *capture) sleep(deadline int64) bool {
	// A look at a thread that a herald has met has told that the process is there. Where the kernel notes nothing
	// (NoNotes), a herald calls for any process, and nobody may be looked at.
	asked := c.called >= 0 && c.taken
	c.taken = false
	for c.called = -1; ; asked = false {
		select {
		case <-c.cancel:
			c.cancelled = true
			return false
		default:
		}
		if !asked && c.proc.Ended() {
			c.stats.Ended = true
		}
		if c.over() || ptrace.SuspendWanted() {
			return false
		}
		c.collect()
		c.progress.answer(c.sum)
		now := ptrace.Monotonic()
		if now >= deadline {
			return true
		}
		until := min(deadline, now+maxNap)
		if c.t.Pending() > 0 {
			until = min(until, now+int64(c.t.Patience()))
		}
		if c.heralds != nil && now >= c.rest {
			if c.await(now, until) {
				return true
			}
			continue
		}
		if c.heralds != nil {
			until = min(until, c.rest)
		}
		c.q.handOverBefore(until)
		c.ts = unix.NsecToTimespec(until)
		ptrace.SleepUntil(&c.ts)
		if ptrace.Monotonic() >= deadline && c.t.Pending() == 0 {
			return true
		}
	}
}

// await sleeps until a herald calls, or that moment. It returns true at once if a herald has called: somebody stands
// still for us.
func (c *capture) await(now, until int64) bool {
	c.q.handOverBefore(max(now, c.heralds.Next()))
	c.heralds.Hasten(c.t.Pending() > 0)
	c.called = c.heralds.Await(min(until, c.q.handOverAt()))
	if c.called < 0 {
		return false
	}
	if c.t.Pending() > 0 {
		c.t.BoundTo(ptrace.CurrentCPU())
		c.collect()
	}
	return true
}

// collect takes the stops that have come.
func (c *capture) collect() {
	for c.t.Pending() > 0 {
		snap, o, ok := c.t.Collect()
		if !ok {
			return
		}
		c.accountLate(snap, o)
	}
}

// accountLate has the engine account for a look whose stop has come late.
func (c *capture) accountLate(snap *look.Look, o ptrace.Outcome) {
	taken := c.stats.Taken
	if c.late(snap, o); c.stats.Taken > taken {
		c.stats.Late++
	}
}

// maxDenied looks in a row that are not permitted end the run.
const maxDenied = 10

// checkEnd learns from a look's outcome whether further looks make sense.
func (c *capture) checkEnd(o ptrace.Outcome) {
	switch o {
	case ptrace.Taken:
		c.denied, c.taken = 0, true
	case ptrace.ProcessGone:
		c.stats.Ended = true
	case ptrace.NotPermitted:
		if c.denied++; c.denied == maxDenied {
			c.failed = &NotPermittedError{c.proc.PID}
		}
	case ptrace.Silent, ptrace.Failed:
		c.failed = c.t.ReadErr()
	}
}

// soFar is what capture has counted.
func (c *capture) soFar() Stats {
	s := c.stats
	s.Pauses, s.Holds = c.t.Pauses, c.t.Holds()
	s.Signals = c.t.Signals
	s.Silent = c.t.Silent()
	s.Interval = c.ticks.interval
	s.Wall = time.Duration(ptrace.Monotonic() - c.began)
	s.CPU = c.cpuBefore + threadCPU() - c.cpuAtFrom
	return s
}

// NotPermittedError: the kernel does not let us trace the process. That may happen in the middle of a run too: the
// process may have changed its user, or become undumpable.
type NotPermittedError struct{ PID int }

func (e *NotPermittedError) Error() string {
	return "sampler: not permitted to trace the process"
}

// threadCPU is the CPU time of this OS thread.
func threadCPU() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
