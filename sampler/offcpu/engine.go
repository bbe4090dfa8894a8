//go:build linux

package offcpu

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler"
	"goprof/sampler/bpf"
	"goprof/sampler/cpuset"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/span"
	"goprof/sampler/stops"
	"goprof/sampler/threads"
)

// Off-CPU time by context switches. The kernel notes each switch of each thread of the process: when the thread left
// its CPU, with its registers and a copy of its stack, and when it got one again. The times are exact, and each wait
// has the stack with which it began. If there are too many waits, short ones are thinned out (thin.go). No thread is
// stopped.
//
// No record says what a thread waits for (which lock, which file). A thread may still be waiting when its record is
// read, some ms later. The engine looks at such a thread as package wall does, without a stop. That look counts for the
// whole wait if the thread's next record says that the thread did not run meanwhile. Shorter waits have their stack
// alone.
//
// Threads that begin later inherit the events. If a thread was created while goprof listed the threads, it may have
// each event twice. So the engine ignores a switch that was noted already.

// Options say which waits are wanted.
type Options struct {
	Min    time.Duration    // shorter ones are counted, and have no stack
	Wakers bool             // what ended a wait is wanted, too
	During func(*look.Look) // wall.Options.During
}

// Engine is an Engine of waits, by context switches.
type Engine struct {
	sampler.Base
	opt Options
}

var _ sampler.Engine = (*Engine)(nil)

// New makes an engine of a process's waits.
func New(pid int, cpu *arch.CPU, opt Options) *Engine {
	return &Engine{sampler.NewBase(pid, cpu, nil), opt}
}

// Run is sampler.Engine's.
func (o *Engine) Run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	return stops.Trace(ctx, &o.Base, cfg, q, o.run)
}

const (
	// offTick is how often the records are read: a wait that lasts longer is looked at.
	offTick = int64(500 * time.Microsecond)
	// SwitchStack is how much of a stack the record of a switch has. 10,000 switches a second are 320 MB. Of 16 KB, one
	// stack in seven of javac's ended too early, most of them the compilers'.
	SwitchStack = 32 << 10
	// offTries is how often the engine tries to look at the same wait.
	offTries = 3
	// At each offSettle, a wait that goes on is counted up to that moment.
	offSettle = int64(time.Second)
	// offBatch bounds the copies of stacks that are kept of one reading.
	offBatch = 64 << 20
	// mostHeld bounds the looks that are held until a record proves which wait each belongs to.
	mostHeld = 64
)

// offRun is one run on its own OS thread.
type offRun struct {
	stops.Run
	off     *Engine
	pid     int
	cpu     *arch.CPU
	opt     Options
	rings   ring.Set
	wakes   *wakeups     // nil where wakers are not wanted
	spans   *span.Reader // nil: the process published none in the beginning, or they cannot be read here
	outputs *span.Outputs
	onLeave int // the program behind the event of switches; -1: there is none
	cpus    []int
	fds     []int
	sample  ring.Sample
	threads map[int]*offThread
	known   sampler.KnownHints
	records []offRecord
	arena   arena
	counts  sampler.OffCPUCounts
	unmet   int64   // records that were lost, and may be the stacks of waits that are still to come
	reading int     // the ring that is being read
	seen    []int64 // when the last record of each ring was
	gap     int     // where in records a gap is whose end is not known yet; -1: there is none
	blind   int64   // what was before is not known, or worked off
	// lostFrom is since when records are missing, if it was not asked since which threads wait: else 0. foundAt is when
	// it was asked last, findAt when it may be asked again.
	lostFrom, foundAt, findAt int64
	held                      int
	settled                   int64
	thin                      thinning
	ended                     int64 // when all waits were ended
	pruneAt                   int   // when so many threads are known, ended ones are looked for
}

// offThread is one thread.
type offThread struct {
	tid     int
	out     int64 // since when the thread has been off its CPU; 0: it is on one, or that is not known
	ran     int64 // when the thread got a CPU before
	taken   bool  // the thread's CPU was taken from it: it is ready to run
	counted int64 // until when the look has been counted
	tally   *look.Tally
	before  int64            // counted, when tally began
	rest    *look.Charge     // what the kernel had charged the thread at the held look
	again   int64            // when a look that came to nothing is repeated
	copied  offCopy          // the stack with which the thread left its CPU
	buf     []byte           // for copied, where it has to be kept
	woken   *wakeup          // the last one
	slept   [mostSlept]slept // its last waits, the latest first
	looked  int64            // when the held look was done
	snap    *look.Look
	tries   int
	owed    time.Duration // of its waits that were thinned out: thin.go
}

func (o *Engine) run(c stops.Run, cfg sampler.Config) (sampler.Stats, error) {
	r := &offRun{Run: c, off: o, pid: o.PID, cpu: o.CPU, opt: o.opt,
		threads: map[int]*offThread{}, known: sampler.KnownHints{}, onLeave: -1, gap: -1}
	r.Late, r.Sum = func(*look.Look, ptrace.Outcome) {}, r.total
	defer r.close()
	if err := r.open(cfg.Contexts); err != nil {
		return sampler.Stats{}, err
	}
	return r.RunInShifts(r.loop, r.finishAll)
}

// Try finds out whether the kernel reports the switches of a process.
func Try(pid int) error {
	power, err := ring.Try(pid)
	switch {
	case err == nil && !power.Kernel:
		err = &ring.Error{Call: "perf_event_open", Err: unix.EACCES}
	case err == nil && !marksTaken(kernelRelease()):
		err = ErrUnmarked
	}
	return err
}

// ErrUnmarked: this kernel's records of switches do not say whether a thread waits, or has lost its CPU to another one.
var ErrUnmarked = errors.New("sampler: records of switches do not distinguish waits from threads that lost their CPU")

// marksTaken reports whether records say that (SwitchReady; kernel/events/core.c, perf_event_switch). No trial
// says: a record without the mark may be of a thread that waits.
func marksTaken(release string) bool {
	numbers := append(strings.FieldsFunc(release, func(c rune) bool { return c < '0' || c > '9' }), "", "")
	major, err := strconv.Atoi(numbers[0])
	minor, _ := strconv.Atoi(numbers[1])
	return err != nil || major > 4 || major == 4 && minor >= 17
}

func kernelRelease() string {
	var name unix.Utsname
	unix.Uname(&name) // which fails for a bad address only
	return unix.ByteSliceToString(name.Release[:])
}

// open makes the rings, and opens an event on each thread and CPU.
func (r *offRun) open(contexts *ptrace.Contexts) (err error) {
	threads.RaiseFileLimit()
	r.cpus = cpuset.Online()
	r.seen = make([]int64, len(r.cpus))
	if r.arena, err = newArena(offBatch); err != nil {
		return err
	}
	size := ring.Share(len(r.cpus), ring.MostOfEvents)
	if r.rings, err = ring.Open(r.cpus, size, min(size, ring.Least)); err != nil {
		return err
	}
	if contexts != nil && contexts.Published() {
		r.spans, r.Stats.NoSpans = span.New(0)
		r.spans.Follow(r.pid, contexts)
		r.outputs = r.spans.NewOutputs()
		r.outputs.Open(r.cpus, r.rings)
	}
	if r.opt.Wakers {
		r.wakes = &wakeups{run: r}
		if err = r.wakes.open(min(size, ring.Most)); err != nil {
			return err
		}
	}
	if err = r.openOnLeave(); err != nil {
		return err
	}
	attr := offAttr(r.cpu, min(SwitchStack, ring.StackFor(size)))
	return ring.EachThread(r.Proc, func(tid int) error {
		r.threads[tid] = &offThread{tid: tid}
		fds, err := r.rings.OpenEvents(&attr, tid, r.cpus)
		r.fds = append(r.fds, fds...)
		if err != nil || r.onLeave < 0 {
			return err
		}
		if err = r.watch(fds); r.wakes == nil {
			return nil // its waits have no spans
		}
		return err
	})
}

// openOnLeave loads the program that runs where a thread leaves its CPU, if that program has anything to do. If there
// are no wakers, the recording also works without the program.
func (r *offRun) openOnLeave() (err error) {
	if r.wakes == nil {
		r.onLeave = r.outputs.Load()
		return nil
	}
	r.onLeave, err = r.outputs.LoadForPerf(func(o *span.Outputs) *bpf.Code { return leaveProgram(r.wakes, o) })
	if err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	return nil
}

// leaveProgram returns a program that notes that a thread leaves its CPU, and the thread's span. The program lets the
// sample pass if there is room for the span.
func leaveProgram(w *wakeups, outputs *span.Outputs) *bpf.Code {
	c := bpf.New()
	c.Mov(bpf.R6, bpf.R1)
	outputs.Write(c, -ring.SpanSize)
	c.Mov(bpf.R6, bpf.R0)
	w.noteLeaving(c)
	c.Mov(bpf.R0, bpf.R6)
	c.Op(bpf.Exit, 0, 0, 0, 0)
	return c
}

// watch has an event of switches run the program, and the events that inherit from it.
func (r *offRun) watch(fds []int) error {
	for _, fd := range fds {
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, r.onLeave); err != nil {
			return &ring.Error{Call: "PERF_EVENT_IOC_SET_BPF", Err: err}
		}
	}
	return nil
}

func (r *offRun) close() {
	for _, fd := range r.fds {
		unix.Close(fd)
	}
	if r.onLeave >= 0 {
		unix.Close(r.onLeave)
	}
	r.wakes.close()
	r.outputs.Close()
	r.spans.Close()
	r.rings.Close()
	r.arena.close()
}

// loop reads the rings in each tick. The first call also begins the account.
func (r *offRun) loop() {
	r.known.TakeFrom(&r.off.Hints)
	if r.settled == 0 {
		r.drain(ptrace.Monotonic()) // the records of the time in which events were opened
		r.Began = ptrace.Monotonic()
		r.settled, r.blind = r.Began, r.Began
		for _, th := range r.threads {
			r.forget(th, r.Began)
		}
		r.lostFrom = 0 // what was missing before the beginning is nobody's
		r.findWaiting(r.Began)
	}
	now := ptrace.Monotonic()
	for next := now + offTick; r.Sleep(next); next = max(next+offTick, now+offTick/4) {
		r.Stats.Ticks++
		r.spans.Follow(r.pid, r.Tracer.Contexts)
		r.known.TakeFrom(&r.off.Hints)
		r.drain(ptrace.Monotonic())
		r.findAgain()
		r.lookAtWaiting()
		now = ptrace.Monotonic()
		r.thin.fit(now, r.Queue.IsBehind(thinBehind), sampler.OwnCPU())
		if r.wakes != nil {
			r.wakes.thin(r.thin.limit, r.opt.Min)
		}
	}
}

// findAgain finds out which threads wait after records were missing. It takes a tenth of a CPU at most.
func (r *offRun) findAgain() {
	now := ptrace.Monotonic()
	if r.lostFrom == 0 || now < r.findAt {
		return
	}
	r.findWaiting(now)
	r.findAt = now + 10*(ptrace.Monotonic()-now)
}

// findWaiting finds out which threads wait of which no record has said it: when the run begins, and where records are
// missing. Threads that a signal has stopped are among them. They are then treated like threads whose wait begins now.
func (r *offRun) findWaiting(now int64) {
	for tid, th := range r.threads {
		if th.out != 0 || th.ran > r.blind {
			continue
		}
		th.tries = 0
		if state, _ := r.Proc.Status(tid); state == 'S' || state == 'D' || state == 'T' {
			th.out, th.counted, th.taken = now, now, false
		}
	}
	if r.lostFrom != 0 { // each ring may have a gap for the same time
		r.counts.Missed += time.Duration(now - max(r.lostFrom, r.foundAt))
	}
	r.lostFrom, r.foundAt = 0, now
}

// leastPruned is how many threads must be known before ended ones are looked for.
const leastPruned = 256

// prune forgets threads that have ended. No record reports the end of a thread: the kernel removes a thread's events
// before the thread leaves its CPU for the last time (kernel/exit.c, do_exit). So ended threads seem to run. Without
// prune, each of them would be visited in each tick.
func (r *offRun) prune() {
	if len(r.threads) < max(r.pruneAt, leastPruned) {
		return
	}
	live := map[int]bool{}
	if r.Proc.Threads(func(tid int) { live[tid] = true }) != nil {
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

func (r *offRun) total() sampler.Stats {
	s := r.SoFar()
	s.Wall = time.Duration(r.ended - r.Began) // until when the waits are counted
	s.Threads = len(r.threads)
	s.Looks.Voids = r.Tracer.Voids
	s.OffCPU = r.counts
	s.OffCPU.Limit = r.thin.longest
	return s
}

// Abilities is sampler.Engine's.
func (o *Engine) Abilities() sampler.Abilities {
	return sampler.Abilities{ReadsLate: true, Bursts: true, Switches: true}
}
