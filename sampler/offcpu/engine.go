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

// Off-CPU time by context switches. The kernel notes each switch of each thread of the process. A note says when the
// thread left its CPU, with its registers and a copy of its stack, or when it got a CPU again. The times are exact, and
// each wait has the stack with which it began. If there are too many waits, goprof leaves out some of the short ones
// (thin.go). No thread is stopped.
//
// No record says what a thread waits for (which lock, which file). A thread may still be waiting when its record is
// read, some ms later. The engine looks at such a thread as package wall does, without a stop. That look counts for the
// whole wait if the thread's next record shows that the thread did not run meanwhile. Of shorter waits only the stack
// is known.
//
// Threads that begin later inherit the events. If a thread was created while goprof listed the threads, it may have
// each event twice. So the engine ignores a second record of a switch.

// Options say which waits to record.
type Options struct {
	Min    time.Duration    // shorter waits are counted, and have no stack
	Wakers bool             // also find out what ended each wait
	During func(*look.Look) // wall.Options.During
}

// Engine records waits, by context switches.
type Engine struct {
	sampler.Base
	opt Options
}

var _ sampler.Engine = (*Engine)(nil)

// New makes an engine of a process's waits.
func New(pid int, cpu *arch.CPU, opt Options) *Engine {
	return &Engine{sampler.NewBase(pid, cpu, nil), opt}
}

// Run is described at sampler.Engine.
func (o *Engine) Run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	return stops.Trace(ctx, &o.Base, cfg, q, o.run)
}

const (
	// offTick is the time between two readings of the rings. goprof looks at a thread whose wait lasts longer.
	offTick = int64(500 * time.Microsecond)
	// SwitchStack is the size of the stack in the record of a switch. 10,000 switches a second make 320 MB. With 16 KB,
	// one stack in seven of javac ended too early, most of them of compiler threads.
	SwitchStack = 32 << 10
	// offTries is how often the engine tries to look at the same wait.
	offTries = 3
	// offSettle: a wait that goes on is counted up to now at least this often.
	offSettle = int64(time.Second)
	// offBatch bounds the copies of stacks of one reading.
	offBatch = 64 << 20
	// mostHeld bounds the looks that are held until a record shows to which wait they belong.
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
	wakes   *wakeups     // nil if wakers are not wanted
	spans   *span.Reader // nil: the process published none at the beginning, or spans cannot be read here
	outputs *span.Outputs
	onLeave int // the program of the event of switches; -1: there is none
	cpus    []int
	fds     []int
	sample  ring.Sample
	threads map[int]*offThread
	known   sampler.KnownHints
	records []offRecord
	arena   arena
	counts  sampler.OffCPUCounts
	unmet   int64   // lost records that may be the stacks of waits still to come
	reading int     // the ring that is being read
	seen    []int64 // the time of each ring's last record
	gap     int     // the index in records of a gap whose end is not known yet; -1: there is none
	blind   int64   // the time before this is unknown, or its records are worked off
	// lostFrom is the beginning of the first gap in the records since goprof last asked which threads wait, 0 if there
	// is no gap. foundAt is when goprof last asked, findAt when it may ask again.
	lostFrom, foundAt, findAt int64
	held                      int
	settled                   int64
	thin                      thinning
	ended                     int64 // when all waits ended with the run
	pruneAt                   int   // at this number of threads, prune looks for ended ones
}

type offThread struct {
	tid     int
	out     int64 // when the thread left its CPU; 0: it is on a CPU, or this is not known
	ran     int64 // when the thread last got a CPU
	taken   bool  // the thread's CPU was taken from it: it is ready to run
	counted int64 // until when the look has been counted
	tally   *look.Tally
	before  int64            // the value of counted when tally began
	rest    *look.Charge     // the thread's charge at the held look
	again   int64            // when to repeat a look that had no result
	copied  offCopy          // the stack with which the thread left its CPU
	buf     []byte           // memory for copied, if it must be kept
	woken   *wakeup          // the last wakeup of the thread
	slept   [mostSlept]slept // the last waits of the thread, the latest first
	looked  int64            // when the held look was made
	snap    *look.Look
	tries   int
	owed    time.Duration // the time of its waits that was not counted: thin.go
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

// ErrUnmarked: this kernel's records of switches do not distinguish a thread that waits from one that lost its CPU to
// another thread.
var ErrUnmarked = errors.New("sampler: records of switches do not distinguish waits from threads that lost their CPU")

// marksTaken reports whether records make that distinction (SwitchReady; kernel/events/core.c, perf_event_switch). A
// trial cannot show it: a record without the mark may be about a thread that waits.
func marksTaken(release string) bool {
	numbers := append(strings.FieldsFunc(release, func(c rune) bool { return c < '0' || c > '9' }), "", "")
	major, err := strconv.Atoi(numbers[0])
	minor, _ := strconv.Atoi(numbers[1])
	return err != nil || major > 4 || major == 4 && minor >= 17
}

func kernelRelease() string {
	var name unix.Utsname
	unix.Uname(&name) // it fails only for a bad address
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
			return nil // the waits have no spans
		}
		return err
	})
}

// openOnLeave loads the program that runs when a thread leaves its CPU, if the program is needed. Without wakers, the
// recording also works without the program.
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

// leaveProgram returns a program that notes the thread that leaves its CPU, and the thread's span. The program lets the
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

// watch makes the program run with events of switches, and with the events that inherit from them.
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
		r.drain(ptrace.Monotonic()) // the records from before all events were open
		r.Began = ptrace.Monotonic()
		r.settled, r.blind = r.Began, r.Began
		for _, th := range r.threads {
			r.forget(th, r.Began)
		}
		r.lostFrom = 0 // what was missing before the beginning does not matter
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

// findWaiting finds out which threads wait without a record that shows it: at the beginning of the run, and after
// missing records. Threads that a signal has stopped are among them. For all of them the wait counts from now on.
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

// leastPruned is how many threads must be known before prune looks for ended ones.
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
	s.Wall = time.Duration(r.ended - r.Began) // waits are counted until then
	s.Threads = len(r.threads)
	s.Looks.Voids = r.Tracer.Voids
	s.OffCPU = r.counts
	s.OffCPU.Limit = r.thin.longest
	return s
}

// Abilities is described at sampler.Engine.
func (o *Engine) Abilities() sampler.Abilities {
	return sampler.Abilities{ReadsLate: true, Bursts: true, Switches: true}
}
