//go:build linux

package sampler

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"goprof/arch"
	"goprof/process"
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// Config says how to sample.
type Config struct {
	// Interval of CPU time between two samples of a thread, and the mean time between ticks.
	Interval time.Duration
	// NoJitter fires at exact multiples of Interval: for tests. Otherwise each tick
	// falls anywhere within its interval, so that no program runs in step with us.
	NoJitter bool
	// NoNotes asks the threads which of them was on a CPU, as is done where the kernel does not note it: for tests.
	NoNotes bool
	// Online returns the CPUs that threads can run on now; nil: the CPUs that the kernel names. For tests.
	Online func() []int
	// MaxStack bounds the copy of one stack; 0 is DefaultStackLimit.
	MaxStack int
	// MaxOverhead is the share of the threads' CPU time for which pauses may hold them up. Where pauses cost more,
	// Interval grows. 0: there is no bound.
	MaxOverhead float64
	// Pace is the Interval in nanoseconds, and may change at any time; nil: nothing sets Interval anew. Engines that
	// stop threads look at it with each tick.
	Pace *atomic.Int64
	// Lean is for runs that go on for good, beside many others. Events then has small rings, and looks into them less
	// often while nothing happens.
	Lean bool
	// MostSamples bounds the samples of an event in a second; 0 is a usual value.
	MostSamples float64
	// Contents takes what buffers held, for events that are Retired; nil: they are not read.
	Contents *Contents
	// After is Tracer.After. It is called on the sampler's OS thread.
	After func(snap *look.Look, released int64)
	// Note is called with each sample that After is not called with, by engines that stop nobody. It may be nil.
	Note func(snap *look.Look)
	// KnownIn says where Note keeps which code is known; nil: in a place of its own. A sentry looks there. It may be nil.
	KnownIn func(*process.KnownCode)
	// Memory is what After and WallOptions.During read; it may be nil.
	Memory *ptrace.Memory
	// Trail is Tracer.Trail, Contexts Tracer.Contexts.
	Trail    *process.Trail
	Contexts *ptrace.Contexts
}

// readSoon reads what is wanted as soon as a sample is there whose thread nobody stopped.
func (c *Config) readSoon(snap *look.Look, prompt bool) {
	switch {
	case prompt && c.After != nil:
		c.After(snap, snap.When)
	case c.Note != nil:
		c.Note(snap)
	}
}

// MinInterval is the shortest that makes sense: looks take longer.
const MinInterval = 50 * time.Microsecond

// Stats is what happened. Attempted = Taken + the sum of Lost.
type Stats struct {
	Attempted int64
	Taken     int64
	Lost      [ptrace.NumOutcomes]int64 // by Outcome; [Taken] and [Pending] stay 0
	MadeUp    int64                     // of those taken: they count for lost ones of their threads
	Late      int64                     // of those taken: the stop came late and was collected
	Waiting   int64                     // looks at threads that waited for a CPU: no attempts, the thread has not paid
	Asleep    int64                     // of those taken: the thread went to sleep in the moment of the look
	Visits    bool                      // threads were met by visiting their CPUs
	Signals   int64                     // looks that met a signal on its way
	Ticks     int64
	Reached   float64       // samples for each second of CPU time, where the kernel's timers say when (Perf); else 0
	Skipped   int64         // ticks that were not held because their time had passed
	Gap       time.Duration // the longest between two ticks
	Threads   int           // seen by now
	Interval  time.Duration // between two samples of a thread; more than asked for if MaxOverhead made it so
	Ended     bool          // the process ended by itself
	Pauses    ptrace.Histogram
	Holds     ptrace.Holds
	Wall      time.Duration
	CPU       time.Duration // of the sampling thread and its heralds
	Times     Times
	Silent    []int        // threads whose memory did not answer; looks at them are Lost[Silent]
	Looks     LookCounts   // of a Wall; a Repeated look is Taken, too
	Events    []EventCount // of Events, in the order that they were given in
	Gathered  GatherCounts // of a Wall that gathers
	OffCPU    OffCPUCounts // of an OffCPU
}

// LostSum is how many looks were lost.
func (s *Stats) LostSum() (n int64) {
	for _, v := range s.Lost {
		n += v
	}
	return n
}

// Rate is how many ticks a second were held, or times a second of CPU time a thread was sampled.
func (s *Stats) Rate() float64 {
	if s.Reached > 0 {
		return s.Reached
	}
	if s.Wall <= 0 {
		return 0
	}
	return float64(s.Ticks) / s.Wall.Seconds()
}

// Sampler samples the threads of one process that use CPU time.
type Sampler struct {
	progress
	hints
	pid int
	cpu *arch.CPU
	fds int // how many descriptors the scan may keep; 0: as many as it can
}

// New makes a sampler of pid.
func New(pid int, cpu *arch.CPU) *Sampler {
	return &Sampler{progress: newProgress(), pid: pid, cpu: cpu}
}

// ErrInterval: Config.Interval is too short.
var ErrInterval = errors.New("sampler: interval is below 50 us")

// ErrNoProcess: there is no such process.
var ErrNoProcess = errors.New("sampler: no such process")

// Run samples until ctx is done or the process ends; both are normal ends. It closes q.
// It works on OS threads of its own, which end with it. Run is called once.
func (s *Sampler) Run(ctx context.Context, cfg Config, q *Queue) (Stats, error) {
	return s.runTraced(s.pid, s.cpu, cfg, q, func(proc *procfs.Dir, t *ptrace.Tracer) (Stats, error) {
		return s.run(ctx, cfg, q, proc, t)
	})
}

// run is one sampling session.
type run struct {
	capture
	cpu      *arch.CPU
	hints    *hints
	scan     *scan
	visits   *visits    // nil where visits cannot be made
	visiting bool       // CPUs, from this OS thread (visit.go)
	spare    *look.Look // to be filled by the next look; nil: there is none

	spentBefore int64 // CPU time of this OS thread at the end of the last tick
	dueMean     int64 // threads due in a tick, in dueUnit: see crowded
}

func (s *Sampler) run(ctx context.Context, cfg Config, q *Queue,
	proc *procfs.Dir, t *ptrace.Tracer) (Stats, error) {
	fds := filesFor(&cfg)
	if s.fds > 0 {
		fds = s.fds
	}
	visits := newVisits(s.pid, &cfg) // this may take a while: the scan's accounts begin behind it
	defer visits.closeNotes()        // deferred, so also if the visits are given up
	r := &run{capture: newCapture(t, proc, &s.progress, ctx.Done(), cfg, q), cpu: s.cpu, hints: &s.hints,
		scan: newScan(proc, cfg.Interval, fds), visits: visits}
	defer r.scan.close()
	r.late, r.sum, r.hand = r.account, r.total, q.keep
	q.waitFor(cfg.Lean, ptrace.Monotonic())
	return r.runInShifts(r.loop, r.scan.readAllCharges)
}

// loop holds ticks.
func (r *run) loop() {
	visited := r.visiting
	if r.visiting = r.visits != nil && !r.scan.noStats && r.visits.begin(); r.visiting {
		r.heralds = r.visits.heralds
		r.t.ServedBy(r.heralds)
		r.heralds.Want(r.scan.proc.PID)
		defer r.endVisits()
		r.scan.hotFor, r.scan.pools = visitHot, true
		if r.visits.cpus[0].notes != nil {
			r.scan.relist = listNoted
		}
		r.stats.Gap = max(r.stats.Gap, time.Duration(r.scan.begin()))
		r.takeHints() // already the first look at a thread needs them
	} else if r.notVisiting(); visited || r.stats.Ticks == 0 { // else the ticks since the last shift are missed ones
		r.beginTicks()
	}
	r.spentBefore = r.scan.ownCPUTime()
	rest := int64(0)
	for r.sleep(r.nextLook(rest)) {
		spent := r.spentBefore
		if r.visiting {
			r.visitNext()
		} else {
			r.lookAround()
			r.stats.Ticks++
		}
		if r.over() {
			return
		}
		r.spentBefore = r.scan.ownCPUTime()
		spent = r.spentBefore - spent
		now := ptrace.Monotonic()
		rest = now + spent // never more than half of a CPU is ours
		if r.visiting {
			r.rest = r.visits.rest(now, spent)
		} else {
			r.nextTick()
		}
		r.lengthenInterval()
		r.scan.interval = int64(r.ticks.interval)
	}
}

// nextLook is the moment of the next tick, which is not before rest. Where CPUs are visited, it is when to keep the
// house, at the latest.
func (r *run) nextLook(rest int64) int64 {
	if r.visiting {
		now := ptrace.Monotonic()
		r.visits.tell(now, int64(r.ticks.interval))
		return now + napFor(int64(r.ticks.interval))
	}
	return max(r.ticks.at()+r.ticks.randomWithin(int64(r.ticks.interval)), rest)
}

// lookAround looks at threads that have used an interval of CPU time and seem to run.
func (r *run) lookAround() {
	gap := r.scan.begin()
	r.stats.Gap = max(r.stats.Gap, time.Duration(gap))
	r.takeHints() // also the hints for threads that have just been met
	due := int64(0)
	for th := r.scan.next(); th != nil; th = r.scan.next() {
		r.look(th)
		r.collect()
		due++
	}
	r.countDue(due)
}

func (r *run) takeHints() {
	r.hints.take(r.scan.setHint, true)
}

// total brings together what the parts of the run have counted.
func (r *run) total() Stats {
	r.countVisits()
	s := r.soFar()
	if r.visits != nil {
		s.CPU += time.Duration(r.visits.cpu)
	}
	s.Threads = len(r.scan.byTID)
	s.Visits = r.visiting
	// Where threads are billed together, nobody knows which of them have ended.
	s.Times = r.scan.bills.sum(r.scan.byTID, r.over() && !r.scan.pools, r.scan.interval)
	return s
}
