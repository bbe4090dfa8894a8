//go:build linux

package sampler

import (
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/sampler/ptrace"
)

// tracing is what the engines that stop threads have in common: a Tracer on OS threads of our own, ticks that fall anywhere
// within their interval, and the end of all that. Whom a tick looks at is the looker's.
type tracing struct {
	cfg       Config
	q         *Queue
	t         *ptrace.Tracer
	proc      *procfs.Dir
	who       looker
	progress  *progress
	cancel    <-chan struct{}
	stats     Stats
	rng       *rand.Rand
	began     int64
	cpuBefore time.Duration // of the OS threads that we had before
	cpuAtFrom time.Duration // of the one that we have, which Go may have used before
	start     int64         // of the ticks that are step apart
	step      int64
	missed    int64 // ticks that are not yet a whole interval's
	tick      int64 // number of the next tick
	ts        unix.Timespec
	denied    int // in a row
	failed    error
	cancelled bool
	visiting  bool // CPUs, from this OS thread (visit.go)
	slept     bool // up to the tick, which found this CPU with whom we took it from
	thrift    thrift
}

// looker decides whom to look at, and keeps the account of it.
type looker interface {
	// loop holds ticks until sleep returns false or over true.
	loop()
	// account takes what became of a look by a stop, at once or later.
	account(snap *process.Snapshot, o ptrace.Outcome)
	// settle is called when the run is over.
	settle()
	// sum brings together what others have counted.
	sum() Stats
}

// newTracing begins a run. The looker is still to be set.
func newTracing(t *ptrace.Tracer, proc *procfs.Dir, p *progress, cancel <-chan struct{}, cfg Config, q *Queue) tracing {
	t.After, t.Trail = cfg.After, cfg.Trail
	if cfg.Memory != nil {
		t.Serve(cfg.Memory)
	}
	if cfg.MaxStack > 0 {
		t.StackLimit = cfg.MaxStack
	}
	r := tracing{cfg: cfg, q: q, t: t, proc: proc, progress: p, cancel: cancel,
		rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	r.beginTicks(ptrace.Monotonic(&r.ts), int64(cfg.Interval))
	r.began = r.start
	return r
}

// shifts goes on until the run is over: each time on another OS thread, for each ends when goprof is to be suspended.
func (r *tracing) shifts() (Stats, error) {
	for again := true; again; {
		ptrace.OnOwnThread(func() {
			r.t.ChangeOSThread()
			r.cpuAtFrom = threadCPU()
			r.who.loop()
			r.t.CollectRest(r.late)
			if again = !r.over(); !again {
				r.who.settle()
				r.stats = r.who.sum()
			}
			r.cpuBefore += threadCPU() - r.cpuAtFrom
		})
	}
	return r.stats, r.failed
}

// over: nobody wants more, or there is no more to be had.
func (r *tracing) over() bool { return r.cancelled || r.stats.Ended || r.failed != nil }

// tickAt is when the next tick begins.
func (r *tracing) tickAt() int64 { return r.start + r.tick*r.step }

// anywhere is a moment within so much time.
func (r *tracing) anywhere(width int64) int64 {
	if r.cfg.NoJitter {
		return 0
	}
	return r.rng.Int64N(width)
}

// skipMissed moves on to the next tick that is not yet over. Those in between, missed because a
// tick took too long or we were suspended, are counted and never made up for.
func (r *tracing) skipMissed() {
	r.tick++
	current := (ptrace.Monotonic(&r.ts) - r.start) / r.step
	if current > r.tick {
		r.missed += current - r.tick
		r.tick = current
		each := int64(r.cfg.Interval) / r.step // an interval may have several, see planVisit
		r.stats.Skipped += r.missed / max(each, 1)
		r.missed %= max(each, 1)
	}
}

// yield makes the interval longer if pauses cost more than they may.
func (r *tracing) yield() {
	longer := r.thrift.interval(r.cfg.MaxOverhead, r.cfg.Interval, &r.t.Pauses)
	if longer != r.cfg.Interval {
		r.cfg.Interval = longer
		r.beginTicks(ptrace.Monotonic(&r.ts), int64(longer))
	}
}

// beginTicks counts ticks from now on, so far apart.
func (r *tracing) beginTicks(now, step int64) { r.start, r.tick, r.step = now, 0, step }

// nap bounds how long a sleep can go on when the run is cancelled.
const maxNap = 50 * int64(time.Millisecond)

// sleep waits until the deadline, and looks after pending stops and questions meanwhile. It returns false when
// the run is over, or goprof is to be suspended.
func (r *tracing) sleep(deadline int64) bool {
	for r.slept = false; ; {
		select {
		case <-r.cancel:
			r.cancelled = true
			return false
		default:
		}
		if r.proc.Ended() {
			r.stats.Ended = true
		}
		if r.over() || ptrace.SuspendWanted() {
			return false
		}
		r.collect()
		r.progress.answer(r.who.sum)
		now := ptrace.Monotonic(&r.ts)
		if now >= deadline {
			return true
		}
		until := min(deadline, now+maxNap)
		if r.t.Pending() > 0 {
			until = min(until, now+int64(r.t.Patience()))
		}
		r.ts = unix.NsecToTimespec(until)
		ptrace.SleepUntil(&r.ts)
		if r.slept = ptrace.Monotonic(&r.ts) >= deadline; r.slept && r.t.Pending() == 0 {
			return true // at once: somebody may stand still for us
		}
	}
}

// collect takes the stops that have come.
func (r *tracing) collect() {
	for {
		snap, o, ok := r.t.Collect()
		if !ok {
			return
		}
		r.late(snap, o)
	}
}

func (r *tracing) late(snap *process.Snapshot, o ptrace.Outcome) {
	taken := r.stats.Taken
	if r.who.account(snap, o); r.stats.Taken > taken {
		r.stats.Late++
	}
}

// maxDenied looks in a row that are not permitted end the run.
const maxDenied = 10

// noteEnd takes from a look whether others make sense.
func (r *tracing) noteEnd(o ptrace.Outcome) {
	switch o {
	case ptrace.Taken:
		r.denied = 0
	case ptrace.ProcessGone:
		r.stats.Ended = true
	case ptrace.NotPermitted:
		if r.denied++; r.denied == maxDenied {
			r.failed = &NotPermittedError{r.proc.PID}
		}
	case ptrace.Silent, ptrace.Failed:
		r.failed = r.t.ReadErr()
	}
}

// sum is what both engines have counted here.
func (r *tracing) sum() Stats {
	s := r.stats
	s.Pauses = r.t.Pauses
	s.Signals = r.t.Signals
	s.Silent = r.t.Silent()
	s.Interval = r.cfg.Interval
	s.Wall = time.Duration(ptrace.Monotonic(&r.ts) - r.began)
	s.CPU = r.cpuBefore + threadCPU() - r.cpuAtFrom
	return s
}

// NotPermittedError: the kernel does not let us trace the process, in the middle of a run too (it
// may have changed its user, or become undumpable).
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
