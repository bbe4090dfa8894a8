//go:build linux

package wall

import (
	"context"
	"time"

	"goprof/arch"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/stops"
	"goprof/sampler/threads"
)

// How goprof looks at every thread, whatever the thread does.
//
// In each interval every thread is looked at once, at a moment of its own. The interval has several slots, and in each
// slot some of the threads are visited, in turn. The first thread is chosen at random. So no program runs in step with
// goprof, and 10,000 threads take many short times instead of one long time.
//
//   - A thread that has not moved since its last look still has the same stack: that look counts once more
//     (look.Tally). One pread of the thread's schedstat shows that: the kernel has charged the thread nothing and given
//     it no CPU.
//   - A thread that is blocked is looked at without a stop (Tracer.LookUnstopped).
//   - A thread that runs is stopped, as package visit does it. With NonBlocking the thread is not stopped: then the
//     look has no stack.
//
// A thread that was woken and has no CPU yet has not moved either, so its looks count for the stack at which it slept.
// Its state in /proc/PID/stat would show that it was woken, but reading the state costs seven times as much. When the
// thread gets its CPU, the kernel reports how long it waited. Then settleReady turns as many looks into looks at a
// thread that was ready.
//
// One error remains: a thread that is seen running may go to sleep in the microseconds before its stop. It is then
// stopped in its system call (LookCounts.Asleep). No tracer can prevent that. Only NonBlocking does.

// Options say how an Engine looks.
type Options struct {
	// NonBlocking stops no thread.
	NonBlocking bool
	// NativeOnce stops a thread once in each new place where it has come to rest. The stop shows the thread's native
	// frames.
	NativeOnce bool
	// WaitingOnly leaves out threads that run.
	WaitingOnly bool
	// During is called with each look at a blocked thread, to read more of the thread. The thread has not moved
	// meanwhile. During is called on the sampler's OS thread, and may be nil.
	During func(*look.Look)
	// With Gather, only threads that keep all others waiting are looked at (gather.go); nil: all threads.
	Gather *GatherOptions
}

// Engine looks at every thread in each interval.
type Engine struct {
	sampler.Base
	opt Options
}

var _ sampler.Engine = (*Engine)(nil)

// New makes an engine for pid.
func New(pid int, cpu *arch.CPU, opt Options) *Engine {
	return &Engine{sampler.NewBase(pid, cpu, nil), opt}
}

// Run samples until ctx is done or the process ends; both are normal ends. It closes q.
func (w *Engine) Run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	return stops.Trace(ctx, &w.Base, cfg, q, w.run)
}

type wallRun struct {
	stops.Run
	cpu     *arch.CPU
	hints   *sampler.Hints
	opt     Options
	threads watchList
	heldAt  int64 // when the last tick was over, or the run began
	first   int   // the thread that this tick began with
	now     int64 // when the visits that are under way began
	rest    int64 // until when others have the CPU
	looked  bool  // the last visit did more than read one file
}

func (w *Engine) run(c stops.Run, cfg sampler.Config) (sampler.Stats, error) {
	r := &wallRun{Run: c, cpu: w.CPU, hints: &w.Hints, opt: w.opt, heldAt: c.Began}
	r.threads.open(c.Proc, threads.FilesFor(&cfg))
	defer r.threads.close()
	r.Late, r.Sum = r.account, r.total
	r.Queue.MakeAll()
	if w.opt.Gather != nil {
		g := newGatherRun(r)
		return r.RunInShifts(g.loop, func() { g.close(ptrace.Monotonic(), nil) })
	}
	return r.RunInShifts(r.loop, func() {})
}

func (r *wallRun) loop() {
	for r.round() {
		r.Stats.Ticks++
		r.countGap()
		r.NextTick()
		r.LengthenInterval()
	}
}

const (
	// perSlot is how many threads are visited in one slot of the interval, at least.
	perSlot = 256
	minSlot = 2 * time.Millisecond
	// mostSlots bounds the slots of an interval. At the beginning of each slot all threads may be asked about at once
	// (quiet.go).
	mostSlots = 4
	// maxPiece is how long the sampling thread goes on before it lets others have the CPU.
	maxPiece = int64(time.Millisecond)
)

// round visits every thread once. False: the run is over, or goprof is to be suspended.
func (r *wallRun) round() bool {
	slots := max(1, min(len(r.threads.order)/perSlot, int(r.Ticks.Interval/minSlot), mostSlots))
	width := int64(r.Ticks.Interval) / int64(slots)
	start := r.Ticks.At()
	n := 0
	for i := range slots {
		at := start + int64(i)*width + r.Ticks.RandomWithin(width)
		if !r.Sleep(max(at, r.rest)) {
			return false
		}
		if i == 0 {
			r.threads.list()
			r.hints.Take(r.setHint, r.threads.whole)
			if n = len(r.threads.order); n == 0 {
				return true
			}
			r.first = r.Ticks.Rng.IntN(n)
		}
		if !r.slot(n*i/slots, n*(i+1)/slots) {
			return false
		}
	}
	return true
}

// slot visits the threads from number from up to number to, counted from r.first. It pauses after each maxPiece of
// time, so that others get the CPU. It returns false if the run is over, or goprof is to be suspended.
func (r *wallRun) slot(from, to int) bool {
	order := r.threads.order
	r.now = ptrace.Monotonic()
	r.threads.findQuiet(r.now, to-from)
	for i := from; i < to; i++ {
		if th := order[(r.first+i)%len(order)]; th.tid != 0 {
			r.visit(th)
		}
		if r.Tracer.Pending() > 0 {
			r.Collect()
		}
		if r.Over() {
			return false
		}
		if (i-from)%16 != 15 && !r.looked {
			continue // reading the clock is a system call, and an idle thread is done with in one
		}
		r.looked = false
		if now := ptrace.Monotonic(); now-r.now > maxPiece {
			if !r.Sleep(now + (now - r.now)) {
				return false
			}
			r.now = ptrace.Monotonic()
			r.threads.quiet.now = false // many may have moved since
		}
	}
	now := ptrace.Monotonic()
	r.rest = now + (now - r.now) // rest as long as this took: the sampling thread never has more than half of a CPU
	return true
}

// countGap notes how long it was since the tick before was over, or since the run began.
func (r *wallRun) countGap() {
	now := ptrace.Monotonic()
	r.Stats.Gap = max(r.Stats.Gap, time.Duration(now-r.heldAt))
	r.heldAt = now
}

// setHint stores what is known of a thread, and reports whether the thread is in the list.
func (r *wallRun) setHint(tid int, hint ptrace.Hint) bool {
	th := r.threads.byTID[tid]
	if th != nil {
		th.setHint(hint)
	}
	return th != nil
}

// total adds up the counts of all parts of the run.
func (r *wallRun) total() sampler.Stats {
	s := r.SoFar()
	s.Threads = len(r.threads.byTID)
	s.Looks.Voids = r.Tracer.Voids
	return s
}
