//go:build linux

package sampler

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/target"
)

// Config says how to sample.
type Config struct {
	// Interval of CPU time between two samples of a thread, and the mean time between ticks.
	Interval time.Duration
	// NoJitter fires at exact multiples of Interval: for tests. Otherwise each tick
	// falls anywhere within its interval, so that no program runs in step with us.
	NoJitter bool
	// MaxStack bounds the copy of one stack; 0 is DefaultStackLimit.
	MaxStack int
	// MaxOverhead is the share of the threads' CPU time for which pauses may hold them up;
	// where they cost more, Interval grows. 0 is any.
	MaxOverhead float64
	// After is Tracer.After. It is called on the sampler's OS thread.
	After func(snap *target.Snapshot, released int64)
}

// MinInterval is the shortest that makes sense: looks take longer.
const MinInterval = 50 * time.Microsecond

// Stats is what happened. Attempted = Taken + the sum of Lost.
type Stats struct {
	Attempted int64
	Taken     int64
	Lost      [NumOutcomes]int64 // by Outcome; [Taken] and [Pending] stay 0
	Late      int64              // of those taken, the stop had to be collected
	Waiting   int64              // looks at threads that waited for a CPU: no attempts, the thread has not paid
	Signals   int64              // looks that met a signal on its way
	Ticks     int64
	Skipped   int64         // ticks that were not held because their time had passed
	Gap       time.Duration // the longest between two ticks
	Threads   int           // seen by now
	Interval  time.Duration // between two samples of a thread; more than asked for if MaxOverhead made it so
	Ended     bool          // the process ended by itself
	Pauses    Histogram
	Wall      time.Duration
	CPU       time.Duration // of the sampling thread
	Times     Times
	Looks     LookCounts // of a Wall; what it has Repeated is Taken, too
}

// LostSum is how many looks came to nothing.
func (s *Stats) LostSum() (n int64) {
	for _, v := range s.Lost {
		n += v
	}
	return n
}

// Rate is how many ticks a second were held.
func (s *Stats) Rate() float64 {
	if s.Wall <= 0 {
		return 0
	}
	return float64(s.Ticks) / s.Wall.Seconds()
}

// Sampler samples the threads of one process that use CPU time.
type Sampler struct {
	pid   int
	cpu   *arch.CPU
	hints chan advice
	asked chan chan Stats
	done  chan struct{} // closed when Run has ended
	last  Stats         // of a Run that has ended
	fds   int           // how many descriptors the scan may keep; 0: as many as it can
}

type advice struct {
	tid  int
	hint Hint
}

// New makes a sampler of pid.
func New(pid int, cpu *arch.CPU) *Sampler {
	return &Sampler{pid: pid, cpu: cpu, hints: make(chan advice, 1024), asked: make(chan chan Stats), done: make(chan struct{})}
}

// Advise tells what is known of a thread, from any goroutine, also before Run. Until then 64 KB
// of its stack are copied. It returns false when too many are waiting: try again later.
func (s *Sampler) Advise(tid int, hint Hint) bool {
	select {
	case s.hints <- advice{tid, hint}:
		return true
	default:
		return false
	}
}

// Stats is what happened so far, from any goroutine, once Run has been called. It waits for
// the sampler's next look around, 50 ms at most.
func (s *Sampler) Stats() Stats {
	reply := make(chan Stats, 1)
	select {
	case s.asked <- reply:
		return <-reply
	case <-s.done:
		return s.last
	}
}

// ErrInterval: Config.Interval is too short.
var ErrInterval = errors.New("sampler: interval is below 50 us")

// ErrNoProcess: there is no such process.
var ErrNoProcess = errors.New("sampler: no such process")

// Run samples until ctx is done or the process ends; both are normal ends. It closes q.
// It works on OS threads of its own, which end with it. Run is called once.
func (s *Sampler) Run(ctx context.Context, cfg Config, q *Queue) (stats Stats, err error) {
	defer close(q.full)
	defer close(s.done)
	if cfg.Interval < MinInterval {
		return Stats{}, ErrInterval
	}
	s.last, err = s.run(ctx, cfg, q)
	return s.last, err
}

// preemptAtOnce gives our OS thread a CPU at the moment at which it wakes up (docs/decisions/0003).
//
// An ordinary thread that wakes up waits until the one that runs has used up its slice, and
// the kernel notices that at a tick, or where that thread itself enters the scheduler: then
// samples would gather at its system calls. And where CPUs are short, a thread of the target
// would stand still for as long as we wait for one. We need little of it: every loop on this
// thread is bounded. Not permitted without privileges: then a better priority, or it is as it is.
func preemptAtOnce() {
	const resetOnFork = 1 // SCHED_FLAG_RESET_ON_FORK
	if runtime.NumCPU() == 1 {
		// Whoever we may have to wait for, Go's garbage collector among them, has no other CPU.
		unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -15)
		return
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: resetOnFork, Priority: 1}
	if unix.SchedSetAttr(0, &attr, 0) != nil {
		unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -15)
	}
}

// run is one sampling session.
type run struct {
	*Sampler
	cfg        Config
	q          *Queue
	t          *Tracer
	scan       *scan
	stats      Stats
	rng        *rand.Rand
	began      int64
	cpuAtStart time.Duration // of our OS thread, which Go may have used before
	cpuBefore  time.Duration // of those that we had before
	start      int64         // of the ticks of this interval
	tick       int64         // number of the next tick
	ts         unix.Timespec
	denied     int // in a row
	failed     error
	thrift     thrift
}

func (s *Sampler) run(ctx context.Context, cfg Config, q *Queue) (Stats, error) {
	t := NewTracer(s.pid, s.cpu)
	defer t.Close()
	t.After = cfg.After
	if cfg.MaxStack > 0 {
		t.StackLimit = cfg.MaxStack
	}
	if t.proc.task < 0 {
		return Stats{}, ErrNoProcess
	}
	r := &run{Sampler: s, cfg: cfg, q: q, t: t,
		rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	fds := descriptors()
	if s.fds > 0 {
		fds = s.fds
	}
	r.scan = newScan(t.proc, cfg.Interval, fds)
	defer r.scan.close()
	r.start = monotonic(&r.ts)
	r.began = r.start
	r.shifts(ctx)
	return r.stats, r.failed
}

// loop holds ticks until the run is over, or goprof is to be suspended: then it returns true.
func (r *run) loop(ctx context.Context) (again bool) {
	stop := ctx.Done()
	rest := int64(0)
	for r.sleep(stop, max(r.deadline(), rest)) {
		if hold.wanted.Load() > 0 {
			return true
		}
		spent := r.scan.spent()
		gap := r.scan.begin()
		r.stats.Gap = max(r.stats.Gap, time.Duration(gap))
		r.takeHints() // also those for threads that have just been met
		for th := r.scan.next(); th != nil; th = r.scan.next() {
			r.look(th)
			r.collect()
		}
		r.stats.Ticks++
		if r.stats.Ended || r.failed != nil {
			return false
		}
		rest = monotonic(&r.ts) + r.scan.spent() - spent // never more than half of a CPU is ours
		r.skipMissed()
		r.yield()
	}
	return false
}

// yield makes the interval longer if pauses cost more than they may.
func (r *run) yield() {
	longer := r.thrift.interval(r.cfg.MaxOverhead, r.cfg.Interval, &r.t.Pauses)
	if longer == r.cfg.Interval {
		return
	}
	r.cfg.Interval = longer
	r.scan.interval = int64(longer)
	r.start, r.tick = monotonic(&r.ts), 0
}

// deadline is when the next tick falls: anywhere within its interval.
func (r *run) deadline() int64 {
	at := r.start + r.tick*int64(r.cfg.Interval)
	if !r.cfg.NoJitter {
		at += r.rng.Int64N(int64(r.cfg.Interval))
	}
	return at
}

// skipMissed moves on to the next tick that is not yet over. Those in between, missed because a
// tick took too long or we were suspended, are counted and never made up for.
func (r *run) skipMissed() {
	r.tick++
	current := (monotonic(&r.ts) - r.start) / int64(r.cfg.Interval)
	if current > r.tick {
		r.stats.Skipped += current - r.tick
		r.tick = current
	}
}

// nap bounds how long a sleep can go on when the run is cancelled.
const maxNap = 50 * int64(time.Millisecond)

// sleep waits until the deadline, or until goprof is to be suspended, and looks after pending stops meanwhile. It returns
// false when the run is over.
func (r *run) sleep(stop <-chan struct{}, deadline int64) bool {
	for {
		select {
		case <-stop:
			return false
		default:
		}
		if r.t.proc.ended() {
			r.stats.Ended = true
			return false
		}
		r.collect()
		r.answer()
		now := monotonic(&r.ts)
		if now >= deadline || hold.wanted.Load() > 0 {
			return true
		}
		until := min(deadline, now+maxNap)
		if r.t.Pending() > 0 {
			until = min(until, now+int64(r.t.Patience()))
		}
		r.ts = unix.NsecToTimespec(until)
		sleepUntil(&r.ts)
	}
}

// answer tells how far the run is, if somebody asks.
func (r *run) answer() {
	select {
	case reply := <-r.asked:
		r.sum()
		reply <- r.stats
	default:
	}
}

func (r *run) takeHints() {
	for range cap(r.hints) {
		select {
		case h := <-r.hints:
			r.scan.setHint(h.tid, h.hint)
		default:
			return
		}
	}
}

// NotPermittedError: the kernel does not let us trace the process, in the middle of a run too (it
// may have changed its user, or become undumpable).
type NotPermittedError struct{ PID int }

func (e *NotPermittedError) Error() string {
	return "sampler: not permitted to trace the process"
}

// letGo waits a little for pending stops, then gives them up: this OS thread ends.
func (r *run) letGo() {
	patience(r.t, func(snap *target.Snapshot, o Outcome) {
		if o == Taken {
			r.stats.Late++
		}
		r.account(snap, o)
	})
}

// sum brings together what others have counted.
func (r *run) sum() {
	r.stats.Pauses = r.t.Pauses
	r.stats.Signals = r.t.Signals
	r.stats.Threads = len(r.scan.byTID)
	r.stats.Interval = r.cfg.Interval
	r.stats.Wall = time.Duration(monotonic(&r.ts) - r.began)
	r.stats.CPU = r.cpuBefore + threadCPU() - r.cpuAtStart
	r.stats.Times = r.scan.bills.sum(r.scan.byTID)
}

// threadCPU is the CPU time of this OS thread.
func threadCPU() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
