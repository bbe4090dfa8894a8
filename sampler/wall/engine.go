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

// Looking at every thread, whatever the thread does.
//
// In each interval every thread is looked at once, at a moment of its own. The interval has several slots, and in each
// slot some of the threads are visited, in turn. The first thread is chosen at random. So no program runs in step with
// goprof, and 10,000 threads need many short visits spread over the interval.
//
//   - A thread that has not moved since its last look still has the same stack: the look counts once more
//     (look.Tally). One pread of the thread's schedstat shows that: the kernel has charged the thread nothing and given
//     it no CPU.
//   - A thread that is blocked is looked at without a stop (Tracer.LookUnstopped).
//   - A thread that runs is stopped, as in package visit. With NonBlocking it is not stopped, and the
//     look has no stack.
//
// A thread that was woken but has no CPU yet has not moved either, so its looks count for the stack with which it
// slept. Its state in /proc/PID/stat would show that it was woken, but reading the state costs seven times as much.
// When the thread gets its CPU, the kernel reports how long it waited. Then settleReady turns that many looks into
// looks at a ready thread.
//
// One error remains: a thread that is seen running may go to sleep in the microseconds before its stop. Such a thread
// is stopped in its system call (LookCounts.Asleep). No tracer can prevent that. NonBlocking avoids it.

// Options say how an Engine looks.
type Options struct {
	// NonBlocking stops no thread.
	NonBlocking bool
	// NativeOnce stops a thread once in each new place where it has come to rest. The stop is for the thread's native
	// frames.
	NativeOnce bool
	// WaitingOnly leaves out threads that run.
	WaitingOnly bool
	// During is called with each look at a blocked thread, to read more of the thread. The thread has not moved
	// meanwhile. During is called on the sampler's OS thread, and may be nil.
	During func(*look.Look)
	// Gather: look only at threads that keep all others waiting (gather.go); nil: look at all threads.
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
	heldAt  int64 // when the last tick ended, or the run began
	first   int   // the thread that this tick began with
	now     int64 // when the present visits began
	rest    int64 // until then, others have the CPU
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
	// perSlot is the least number of threads that a slot of the interval visits.
	perSlot = 256
	minSlot = 2 * time.Millisecond
	// mostSlots bounds the slots of an interval. At the beginning of each slot goprof may check all threads at once
	// (quiet.go).
	mostSlots = 4
	// maxPiece is how long the sampling thread works before it leaves the CPU to others.
	maxPiece = int64(time.Millisecond)
)

// round visits every thread once. It returns false if the run is over, or goprof is about to be suspended.
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

// slot visits the threads with the numbers from to to-1, counted from r.first. It pauses after each maxPiece, so that
// others get the CPU. It returns false if the run is over, or goprof is about to be suspended.
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
			continue // an idle thread costs one system call, and reading the clock would be another
		}
		r.looked = false
		if now := ptrace.Monotonic(); now-r.now > maxPiece {
			if !r.Sleep(now + (now - r.now)) {
				return false
			}
			r.now = ptrace.Monotonic()
			r.threads.quiet.now = false // many threads may have moved since
		}
	}
	now := ptrace.Monotonic()
	r.rest = now + (now - r.now) // rest as long as the work took: the sampling thread uses at most half of a CPU
	return true
}

// countGap notes the time since the last tick ended, or since the run began.
func (r *wallRun) countGap() {
	now := ptrace.Monotonic()
	r.Stats.Gap = max(r.Stats.Gap, time.Duration(now-r.heldAt))
	r.heldAt = now
}

// setHint sets a thread's hint, and reports whether the thread is in the list.
func (r *wallRun) setHint(tid int, hint ptrace.Hint) bool {
	th := r.threads.byTID[tid]
	if th != nil {
		th.setHint(hint)
	}
	return th != nil
}

func (r *wallRun) total() sampler.Stats {
	s := r.SoFar()
	s.Threads = len(r.threads.byTID)
	s.Looks.Voids = r.Tracer.Voids
	return s
}
