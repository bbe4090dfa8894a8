//go:build linux

package sampler

import (
	"context"
	"time"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// How goprof looks at every thread, whatever the thread does.
//
// In each interval every thread is looked at once, at a moment of its own. The threads are visited in turn, some of
// them in each slot of the interval, beginning with any thread. So no program runs in step with us, and 10,000 threads
// take us many short times instead of one long time.
//
//   - A thread that has not moved since its last look still has the same stack: that look counts once more
//     (look.Tally). One pread of the thread's schedstat tells: the kernel has charged the thread nothing and given it
//     no CPU.
//   - A thread that is blocked is looked at without a stop (Tracer.LookUnstopped).
//   - A thread that runs is stopped, as Sampler does it. With NonBlocking the thread is not stopped: then the look has
//     no stack.
//
// A thread that was woken and has no CPU yet has not moved either. Its letter in /proc/PID/stat would tell, but costs
// seven times as much. But once the thread gets its CPU, the kernel counts how long it waited. Some looks were counted
// as what the thread did before; they become looks at a thread that was ready (settleReady).
//
// One case is left: a thread that is seen running may go to sleep in the microseconds before its stop. It is then
// stopped in its system call (LookCounts.Asleep). No tracer can prevent that; NonBlocking can.

// WallOptions say how a Wall looks.
type WallOptions struct {
	// NonBlocking stops no thread.
	NonBlocking bool
	// NativeOnce stops a thread once where it has come to rest in a place where it has not been seen before. The stop
	// shows its native frames.
	NativeOnce bool
	// WaitingOnly leaves out threads that run.
	WaitingOnly bool
	// During is called with each look at a blocked thread, to read more of the thread. At that time the thread is known
	// not to have moved. During is called on the sampler's OS thread, and may be nil.
	During func(*look.Look)
	// Gather has only threads looked at that keep all others waiting (gather.go); nil: all threads.
	Gather *GatherOptions
}

// LookCounts is how threads were looked at.
type LookCounts struct {
	Unstopped int64 // without a stop
	Stopped   int64
	AtRest    int64 // of these stops, for NativeOnce
	Asleep    int64 // of these stops, the thread had gone to sleep in the microseconds before
	Repeated  int64 // had not moved since the look before, which counts again
	Quiet     int64 // of these repeats, the thread was not even asked (quiet.go)
	Running   int64 // ran and were not to be stopped
	Voids     int64 // Tracer.Voids
}

// Wall is an Engine that looks at every thread at each interval.
type Wall struct {
	progress
	hints
	pid int
	cpu *arch.CPU
	opt WallOptions
}

var _ Engine = (*Wall)(nil)

// NewWall makes a Wall for pid.
func NewWall(pid int, cpu *arch.CPU, opt WallOptions) *Wall {
	return &Wall{progress: newProgress(), pid: pid, cpu: cpu, opt: opt}
}

// Run samples until ctx is done or the process ends; both are normal ends. It closes q.
func (w *Wall) Run(ctx context.Context, cfg Config, q *Queue) (Stats, error) {
	return w.runTraced(w.pid, w.cpu, cfg, q, func(proc *procfs.Dir, t *ptrace.Tracer) (Stats, error) {
		return w.run(ctx, cfg, q, proc, t)
	})
}

// wallRun is one recording of a Wall.
type wallRun struct {
	capture
	cpu     *arch.CPU
	hints   *hints
	opt     WallOptions
	threads watchList
	heldAt  int64 // when the last tick was over
	first   int   // the thread that this tick began with
	now     int64 // when the visits that are under way began
	rest    int64 // until when we let others have the CPU
	looked  bool  // the last visit did more than read one file
}

func (w *Wall) run(ctx context.Context, cfg Config, q *Queue,
	proc *procfs.Dir, t *ptrace.Tracer) (Stats, error) {
	r := &wallRun{capture: newCapture(t, proc, &w.progress, ctx.Done(), cfg, q), cpu: w.cpu, hints: &w.hints, opt: w.opt}
	r.threads.open(proc, filesFor(&cfg))
	defer r.threads.close()
	r.late, r.sum = r.account, r.total
	if w.opt.Gather != nil {
		g := newGatherRun(r)
		return r.runInShifts(g.loop, func() { g.close(ptrace.Monotonic(), nil) })
	}
	return r.runInShifts(r.loop, func() {})
}

// loop holds ticks.
func (r *wallRun) loop() {
	for r.round() {
		r.stats.Ticks++
		r.countGap()
		r.nextTick()
		r.lengthenInterval()
	}
}

const (
	// perSlot is how many threads are visited in one slot of the interval, at least.
	perSlot = 256
	minSlot = 2 * time.Millisecond
	// mostSlots bounds the slots of an interval. At the beginning of each slot all threads may be asked about at once
	// (quiet.go).
	mostSlots = 4
	// maxPiece is how long we go on without letting others have the CPU.
	maxPiece = int64(time.Millisecond)
)

// round visits every thread once. False: the run is over, or goprof is to be suspended.
func (r *wallRun) round() bool {
	slots := max(1, min(len(r.threads.order)/perSlot, int(r.ticks.interval/minSlot), mostSlots))
	width := int64(r.ticks.interval) / int64(slots)
	start := r.ticks.at()
	n := 0
	for i := range slots {
		at := start + int64(i)*width + r.ticks.randomWithin(width)
		if !r.sleep(max(at, r.rest)) {
			return false
		}
		if i == 0 {
			r.threads.list()
			r.hints.take(r.setHint, r.threads.whole)
			if n = len(r.threads.order); n == 0 {
				return true
			}
			r.first = r.ticks.rng.IntN(n)
		}
		if !r.slot(n*i/slots, n*(i+1)/slots) {
			return false
		}
	}
	return true
}

// slot visits some of the threads.
func (r *wallRun) slot(from, to int) bool {
	order := r.threads.order
	r.now = ptrace.Monotonic()
	r.threads.findQuiet(r.now, to-from)
	for i := from; i < to; i++ {
		if th := order[(r.first+i)%len(order)]; th.tid != 0 {
			r.visit(th)
		}
		if r.t.Pending() > 0 {
			r.collect()
		}
		if r.over() {
			return false
		}
		if (i-from)%16 != 15 && !r.looked {
			continue // reading the clock is a system call, and an idle thread is done with in one
		}
		r.looked = false
		if now := ptrace.Monotonic(); now-r.now > maxPiece {
			if !r.sleep(now + (now - r.now)) {
				return false
			}
			r.now = ptrace.Monotonic()
			r.threads.quiet.now = false // many may have moved since
		}
	}
	now := ptrace.Monotonic()
	r.rest = now + (now - r.now) // rest as long as we worked: never more than half of a CPU is ours
	return true
}

// countGap notes how long it was since the tick before was over.
func (r *wallRun) countGap() {
	now := ptrace.Monotonic()
	if r.heldAt > 0 {
		r.stats.Gap = max(r.stats.Gap, time.Duration(now-r.heldAt))
	}
	r.heldAt = now
}

// setHint notes what is known of a thread, and reports whether the thread is in the list.
func (r *wallRun) setHint(tid int, hint ptrace.Hint) bool {
	th := r.threads.byTID[tid]
	if th != nil {
		th.setHint(hint)
	}
	return th != nil
}

// total brings together what the parts of the run have counted.
func (r *wallRun) total() Stats {
	s := r.soFar()
	s.Threads = len(r.threads.byTID)
	s.Looks.Voids = r.t.Voids
	return s
}
