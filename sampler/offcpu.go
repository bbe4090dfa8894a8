//go:build linux

package sampler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// Off-CPU time by context switches. The kernel notes each switch of each thread of the process: when the thread left
// its CPU, with its registers and a copy of its stack, and when it got one again. The times are exact, and each wait
// has the stack with which it began. Where there are too many, short ones are thinned out (offcpu_thin.go). Nobody is
// stopped.
//
// No record says what a thread waits for (which lock, which file). A thread may still be waiting when its record is
// read, some ms later. OffCPU looks at such a thread as Wall does, without a stop. That look counts for the whole wait
// if the thread's next record says that the thread did not run meanwhile. Shorter waits have their stack alone.
//
// Threads that begin later inherit the events. A thread that was listed while another one made it may have each event
// twice: a switch that was noted already is left out.

// OffCPUOptions say which waits are wanted.
type OffCPUOptions struct {
	Min    time.Duration    // shorter ones are counted, and have no stack
	During func(*look.Look) // WallOptions.During
}

// OffCPUCounts is what an OffCPU has found.
type OffCPUCounts struct {
	Waits, Short int64         // Short: below Min
	ShortFor     time.Duration // how long those took together
	Thinned      int64         // waits that do not count: others stand for them
	Limit        time.Duration // how long those were at most; 0: there were none
	Dropped      int64         // records for which the kernel had no room: after such a loss each thread begins anew
}

// OffCPU is an Engine of waits, by context switches.
type OffCPU struct {
	progress
	hints
	pid int
	cpu *arch.CPU
	opt OffCPUOptions
}

var _ Engine = (*OffCPU)(nil)

// NewOffCPU makes an OffCPU for pid.
func NewOffCPU(pid int, cpu *arch.CPU, opt OffCPUOptions) *OffCPU {
	return &OffCPU{progress: newProgress(), pid: pid, cpu: cpu, opt: opt}
}

// Run is Sampler.Run.
func (o *OffCPU) Run(ctx context.Context, cfg Config, q *Queue) (Stats, error) {
	return o.runTraced(o.pid, o.cpu, cfg, q, func(proc *procfs.Dir, t *ptrace.Tracer) (Stats, error) {
		return o.run(ctx, cfg, q, proc, t)
	})
}

const (
	// offTick is how often the records are read: a wait that lasts longer is looked at.
	offTick = int64(500 * time.Microsecond)
	// SwitchStack is how much of a stack the record of a switch has. 10,000 switches a second are 320 MB. Of 16 KB, one
	// stack in seven of javac's ended too early, most of them the compilers'.
	SwitchStack = 32 << 10
	// offTries is how often OffCPU tries to look at one wait.
	offTries = 3
	// offSettle is how often a wait that goes on is counted up to that moment.
	offSettle = int64(time.Second)
	// offBatch bounds the copies of stacks that are kept of one reading.
	offBatch = 64 << 20
	// mostHeld bounds the looks that are held until a record proves that each is of one wait.
	mostHeld = 64
)

// offRun is one run on its own OS thread.
type offRun struct {
	capture
	off     *OffCPU
	pid     int
	cpu     *arch.CPU
	opt     OffCPUOptions
	rings   ringSet
	cpus    []int
	fds     []int
	sample  rawSample
	threads map[int]*offThread
	known   knownHints
	records []offRecord
	arena   arena
	counts  OffCPUCounts
	held    int
	settled int64
	thin    thinning
	ended   int64 // when all waits were ended
	pruneAt int   // when so many threads are known, ended ones are looked for
}

// offThread is one thread.
type offThread struct {
	tid     int
	out     int64 // since when the thread has been off its CPU; 0: it is on one, or that is not known
	taken   bool  // the thread's CPU was taken from it: it is ready to run
	counted int64 // until when the look has been counted
	tally   *look.Tally
	before  int64        // counted, when tally began
	rest    *look.Charge // what the kernel had charged the thread at the held look
	again   int64        // when a look that came to nothing is repeated
	copied  offCopy      // the stack with which the thread left its CPU
	buf     []byte       // for copied, where it has to be kept
	looked  int64        // when the held look was done
	snap    *look.Look
	tries   int
}

func (o *OffCPU) run(ctx context.Context, cfg Config, q *Queue,
	proc *procfs.Dir, t *ptrace.Tracer) (Stats, error) {
	r := &offRun{capture: newCapture(t, proc, &o.progress, ctx.Done(), cfg, q), off: o, pid: o.pid, cpu: o.cpu, opt: o.opt,
		threads: map[int]*offThread{}, known: knownHints{}}
	r.late, r.sum = func(*look.Look, ptrace.Outcome) {}, r.total
	defer r.close()
	if err := r.open(); err != nil {
		return Stats{}, err
	}
	return r.runInShifts(r.loop, r.finishAll)
}

// TryOffCPU finds out whether the kernel tells us the switches of a process.
func TryOffCPU(pid int) error {
	power, err := TryPerf(pid)
	switch {
	case err == nil && !power.Kernel:
		err = &PerfError{"perf_event_open", unix.EACCES}
	case err == nil && !marksTaken(kernelRelease()):
		err = ErrUnmarked
	}
	return err
}

// ErrUnmarked: this kernel's records of switches do not say whether a thread waits, or has lost its CPU to another one.
var ErrUnmarked = errors.New("sampler: records of switches do not tell waits from threads that lost their CPU")

// marksTaken reports whether records say that (perfMiscSwitchReady; kernel/events/core.c, perf_event_switch). No trial
// tells: a record without the mark may be of a thread that waits.
func marksTaken(release string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return n < 2 || major > 4 || major == 4 && minor >= 17
}

func kernelRelease() string {
	var name unix.Utsname
	unix.Uname(&name) // which fails for a bad address only
	return unix.ByteSliceToString(name.Release[:])
}

func (r *offRun) open() (err error) {
	raiseFileLimit()
	r.cpus = onlineCPUs()
	if r.arena, err = newArena(offBatch); err != nil {
		return err
	}
	size := ringShare(len(r.cpus), eventRing)
	if r.rings, err = openRings(r.cpus, size, min(size, ringLeast)); err != nil {
		return err
	}
	attr := offAttr(r.cpu, min(SwitchStack, ringStack(size)))
	return eachThread(r.proc, func(tid int) error {
		r.threads[tid] = &offThread{tid: tid}
		fds, err := r.rings.openEvents(&attr, tid, r.cpus)
		r.fds = append(r.fds, fds...)
		return err
	})
}

func (r *offRun) close() {
	for _, fd := range r.fds {
		unix.Close(fd)
	}
	r.rings.close()
	r.arena.close()
}

func (r *offRun) loop() {
	r.known.takeFrom(&r.off.hints)
	if r.settled == 0 {
		r.drain(ptrace.Monotonic()) // the records of the time in which events were opened
		r.began = ptrace.Monotonic()
		r.settled = r.began
		r.findWaiting()
	}
	now := ptrace.Monotonic()
	for next := now + offTick; r.sleep(next); next = max(next+offTick, now+offTick/4) {
		r.stats.Ticks++
		r.known.takeFrom(&r.off.hints)
		r.drain(ptrace.Monotonic())
		r.lookAtWaiting()
		now = ptrace.Monotonic()
		r.thin.fit(now, r.q.isBehind(thinBehind), processCPU())
	}
}

// findWaiting finds out which threads wait when the run begins. What they wait for is asked as for waits that begin
// later.
func (r *offRun) findWaiting() {
	for tid, th := range r.threads {
		r.dropHeld(th)
		th.out, th.tally, th.copied.has, th.tries = 0, nil, false, 0
		if state, _ := r.proc.Status(tid); state == 'S' || state == 'D' {
			th.out, th.counted, th.taken = r.began, r.began, false
		}
	}
}

// leastPruned is how many threads must be known before ended ones are looked for.
const leastPruned = 256

// prune forgets threads that have ended. No record tells of an end: the kernel takes a thread's events off before the
// thread leaves its CPU for the last time (kernel/exit.c, do_exit). So ended threads are taken for running, and each
// would be visited in each tick.
func (r *offRun) prune() {
	if len(r.threads) < max(r.pruneAt, leastPruned) {
		return
	}
	live := map[int]bool{}
	if r.proc.Threads(make([]byte, listBytes), func(tid int) { live[tid] = true }) != nil {
		return
	}
	for tid, th := range r.threads {
		if !live[tid] && th.out == 0 {
			r.dropHeld(th)
			delete(r.threads, tid)
		}
	}
	r.pruneAt = 2 * len(r.threads)
}

func (r *offRun) total() Stats {
	s := r.soFar()
	s.Wall = time.Duration(r.ended - r.began) // until when the waits are counted
	s.Threads = len(r.threads)
	s.Looks.Voids = r.t.Voids
	s.OffCPU = r.counts
	s.OffCPU.Limit = r.thin.longest
	return s
}
