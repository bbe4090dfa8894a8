//go:build linux

package perf

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/bpf"
	"goprof/sampler/cpuset"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/span"
	"goprof/sampler/threads"
)

// Sampling by perf_event_open(2). No thread is stopped. The kernel keeps a timer for each CPU. In the timer's interrupt
// the kernel writes the running thread's registers and a copy of its stack into memory that goprof shares with the
// kernel. So a sample costs the thread only that interrupt, and the moment of the sample does not depend on what goprof
// does.
//
// Snapshots of this engine differ:
//   - The copy of a stack ends at 64 KB (PerfStack), and at a page that was never used or is swapped out: an interrupt
//     cannot wait for it. A longer stack is Cut.
//   - Nothing else is copied in that moment: there is no Side, Followed and Under. A walk that needs the frame anchor
//     (native code without unwind information, a signal on a stack of its own) ends there. Threads with Hint.Soon are
//     an exception where the kernel accepts goprof's programs (copy.go): their Side, and what the trail leads to, are
//     copied in that moment, too.
//   - The thread runs on after the sample. For threads with Hint.Soon, memory that must be read soon (Config.After) is
//     read some 50 us later. For other threads, new code is noted within some milliseconds (Config.Note).
//
// There is one event for each CPU, and a BPF program of goprof's keeps the kernel from taking samples of other
// processes (wide.go). Threads with Hint.Soon have events of their own, because each has a program of its own
// (threads.go). Threads are listed as for the other engine, which keeps the same account of CPU time (threads/bill.go).

// Engine samples the threads of one process through perf_event.
type Engine struct {
	sampler.Base
	waker  waker
	kernel bool
}

// New makes a sampler of pid.
func New(pid int, cpu *arch.CPU) *Engine {
	p := new(Engine)
	p.Base = sampler.NewBase(pid, cpu, p.waker.wake)
	return p
}

// WantKernel asks for the kernel's frames, too: Look.Kernel. Call WantKernel before Run.
func (p *Engine) WantKernel() { p.kernel = true }

// ErrOverhead: Config bounds the cost of samples, but goprof cannot find out what an interrupt of the kernel costs.
var ErrOverhead = errors.New("sampler: perf_event does not say what a sample costs, so that it cannot be bounded")

// Run is described at sampler.Engine.
func (p *Engine) Run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	return p.RunEngine(cfg, q, func() (stats sampler.Stats, err error) {
		if cfg.MaxOverhead > 0 {
			return sampler.Stats{}, ErrOverhead
		}
		// The perf engine holds no thread, so goprof may be stopped at any time.
		ptrace.OnThreadHoldingNobody(func() {
			ptrace.LeaveInPeace()
			stats, err = p.run(ctx, cfg, q)
		})
		return stats, err
	})
}

const (
	// perfLook is the mean time between two looks around, which find out which threads have run. Other work waits for
	// these looks. Only handing over is done more often in a run that has just begun (Queue.patience).
	perfLook = sampler.KeptFor
)

// perfRun is one sampling session on its own OS thread.
type perfRun struct {
	perf       *Engine
	cfg        sampler.Config
	q          *sampler.Queue
	proc       *procfs.Dir
	scan       *threads.List
	stats      sampler.Stats
	rng        *rand.Rand
	asked      cpuset.Asked
	online     []int // the CPUs that were on at the last look
	rings      *perfRings
	spans      *span.Reader // nil: spans cannot be read here
	outputs    *span.Outputs
	wide       *wideEvents
	thin       paceKeeper
	grouped    bool // rings and wide are a group's
	threads    map[int]*perfThread
	events     int // open events of threads
	mostEvents int
	round      uint32 // the last listing of the List that was seen
	failed     error
	over       bool // all threads have been read a last time
	copiers    int
	noCopies   bool // the kernel refuses programs for copies

	// The present reading of the rings.
	sample  ring.Sample
	batch   uint64
	sampled []*perfThread // threads with new samples
	now     int64
	handed  int64 // when looks were last handed over

	began      int64
	cpuAtStart time.Duration
	checkerCPU time.Duration // CPU time of checkers that have ended
}

// run opens all events, reads their rings until the end, and returns the account.
func (p *Engine) run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	r := newPerfRun(p, cfg, q)
	defer r.proc.Close()
	if !r.proc.Exists() {
		return sampler.Stats{}, sampler.ErrNoProcess
	}
	if err := r.open(); err != nil {
		return sampler.Stats{}, err
	}
	defer r.close()
	if err := r.listen(); err != nil {
		return sampler.Stats{}, err
	}
	defer p.waker.close()
	defer context.AfterFunc(ctx, p.waker.wake)()
	r.begin()
	r.startChecker()
	r.loop(ctx)
	r.end()
	return r.sum(), r.failed
}

// begin begins the account, once the events are open. Opening events takes long on a busy machine, and CPU time from
// before has no sample.
func (r *perfRun) begin() {
	r.began, r.cpuAtStart = ptrace.Monotonic(), sampler.ThreadCPU()
	r.scan.BeginBills()
	r.q.Begin(r.began)
}

// end ends the account and the events, and then reads the samples that are left in the rings.
func (r *perfRun) end() {
	r.stats.Ended = r.proc.Ended() // another thread may have noticed the end first
	r.scan.Bills.Stop()
	r.wide.closeEvents()
	r.stopChecker()
	r.scan.ReadAllCharges()
	r.over = true
	r.drain()
	r.q.HandOver()
}

// listen makes a sleep end when the process ends or wake is called.
func (r *perfRun) listen() error {
	if err := r.perf.waker.open(); err != nil {
		return err
	}
	for _, fd := range []int{r.perf.waker.fd, r.proc.EndFD()} { // ppoll ignores negative descriptors
		r.rings.polls = append(r.rings.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	return nil
}

// startChecker starts a checker. Samples that can wait are read when the sampling thread next wakes up.
func (r *perfRun) startChecker() {
	if r.cfg.KnownIn == nil {
		return
	}
	r.rings.startChecker(r.perf.CPU, r.inKernel() == ring.KernelFrames, eachWakes(int64(r.cfg.Interval)))
	if r.rings.checker != nil {
		ptrace.PreemptsAtOnce(r.rings.checker.th.TID())
	}
	r.rings.checker.watch(r.perf.PID, r.q, r.cfg.KnownIn)
}

func (r *perfRun) stopChecker() {
	r.checkerCPU += r.rings.checker.cpu()
	r.rings.checker.leave(r.perf.PID, r.cfg.KnownIn)
	r.rings.stopChecker()
}

func newPerfRun(p *Engine, cfg sampler.Config, q *sampler.Queue) *perfRun {
	if cfg.Online == nil {
		cfg.Online = cpuset.Online
	}
	return &perfRun{perf: p, cfg: cfg, q: q, proc: procfs.OpenDir(p.PID),
		threads: map[int]*perfThread{}, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
}

// ringFiles is how many descriptors a CPU needs: for two rings, for the outputs of spans, and for its event.
const ringFiles = 5

// open makes the rings, and opens the events of the CPUs and of threads with Hint.Soon.
func (r *perfRun) open() (err error) {
	if err = mayWatch(r.perf.PID); err != nil {
		return err
	}
	r.asked, r.online = cpuset.AskedNow(), r.cfg.Online()
	fds := max(threads.RaiseFileLimit()-ringFiles*len(r.online), 0)
	r.spans, r.stats.NoSpans = span.New(0)
	r.spans.Follow(r.perf.PID, r.cfg.Contexts)
	r.outputs = r.spans.NewOutputs()
	size := ring.Share(len(r.online), ring.Most)
	if r.rings, err = openPerfRings(r.online, size, r.spans, r.outputs); err != nil {
		r.closeSpans()
		return err
	}
	r.mostEvents = min(fds/2, mostEvents)
	r.scan = threads.New(r.proc, r.cfg.Interval, fds-r.mostEvents)
	r.scan.Keep(threads.Upkeep{HotFor: threads.HotFor, Relist: threads.ListEvery, Pools: true})
	if err = r.watchWide(); err != nil {
		r.close()
	}
	return err
}

// inKernel returns what samples contain for threads in the kernel.
func (r *perfRun) inKernel() ring.Kernel {
	if r.perf.kernel {
		return ring.KernelFrames
	}
	return ring.InKernel
}

// watchWide opens events of the CPUs.
func (r *perfRun) watchWide() error {
	filter, err := r.outputs.LoadForPerf(func(o *span.Outputs) *bpf.Code { return filterProgram(r.perf.PID, o) })
	if err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	r.wide = &wideEvents{rings: r.rings, cpu: r.perf.CPU, kernel: r.inKernel(), interval: int64(r.cfg.Interval),
		exact: r.cfg.NoJitter, filter: filter, most: r.mostStack(), copies: stackFit{stack: r.mostStack()}, rng: r.rng}
	return r.wide.open()
}

func (r *perfRun) close() {
	if r.wide != nil {
		r.wide.closeEvents()
		unix.Close(r.wide.filter)
	}
	for _, th := range r.threads {
		r.unwatch(th)
	}
	r.rings.close()
	r.closeSpans()
	r.scan.Close()
}

func (r *perfRun) closeSpans() {
	r.outputs.Close()
	r.spans.Close()
}

// loop reads the rings until ctx is done, the process ends or something fails.
func (r *perfRun) loop(ctx context.Context) {
	stop := ctx.Done()
	due := int64(0)
	for r.failed == nil {
		select {
		case <-stop:
			return
		default:
		}
		if r.proc.Ended() {
			return
		}
		r.now = ptrace.Monotonic()
		looks := r.now >= due
		r.perf.Take(r.setHint, false)
		r.drain()
		if looks {
			began := r.now
			r.lookAround()
			due = r.nextLookAround(began)
			r.wide.next = due
			r.wide.redraw(r.now)
		}
		r.handOver(looks)
		r.perf.Answer(r.sum)
		r.rings.wait(r.nextMoment(due))
		r.perf.waker.settle()
	}
}

// nextMoment returns when there is something to do. That is the next look around at the latest, and earlier in a hurry
// or in a run that has just begun.
func (r *perfRun) nextMoment(due int64) int64 {
	if r.q.Wait(r.now) == sampler.KeptFor {
		return due
	}
	return min(due, r.handAt())
}

// handAt returns when to hand over all that waits. Looks may wait longer the longer the run lasts. If that time grew
// during a sleep, the sampling thread would wake up too early, and soon again.
func (r *perfRun) handAt() int64 { return r.handed + min(r.q.Wait(r.now), r.q.Wait(r.handed)) }

// handOver hands over what has waited long enough.
func (r *perfRun) handOver(looks bool) {
	if looks || r.now >= r.handAt() {
		r.q.HandOver()
		r.handed = r.now
	}
}

// lookAround finds out which threads there are and which have run.
func (r *perfRun) lookAround() {
	r.scan.Begin()
	r.spans.Follow(r.perf.PID, r.cfg.Contexts)
	r.followCPUs()
	r.perf.Take(r.setHint, true)
	r.scan.Update()
	r.watchAll()
	r.stats.Ticks++
}

// nextLookAround returns when to look around again. The moment is random, so that it does not follow any rhythm of the
// program. Looking around costs at most a tenth of a CPU.
func (r *perfRun) nextLookAround(began int64) int64 {
	took := ptrace.Monotonic() - began
	return began + max(perfLook/2+r.rng.Int64N(perfLook), 10*took)
}

// setHint sets a thread's hint, and reports whether the thread is in the list.
func (r *perfRun) setHint(tid int, hint ptrace.Hint) bool {
	if th := r.threads[tid]; th != nil && (hint.Skip || hint.Soon != th.hasEvents()) {
		r.unwatch(th) // its events may be opened again for the new hint
	}
	return r.scan.SetHint(tid, hint)
}

func (r *perfRun) sum() sampler.Stats {
	s := r.stats
	s.Threads = len(r.scan.ByTID)
	s.Interval = r.cfg.Interval
	s.Wall = time.Duration(ptrace.Monotonic() - r.began)
	if !r.grouped {
		s.CPU = sampler.ThreadCPU() - r.cpuAtStart + r.checkerCPU + r.rings.checker.cpu()
	}
	s.Times = r.scan.Sum(r.over)
	if sampled := s.Times.Sampled; sampled > 0 {
		s.Reached = float64(s.Taken) / sampled.Seconds()
	}
	return s
}

func (r *perfRun) drain() {
	r.beginBatch(r.batch + 1)
	r.rings.drain(r)
	r.now = ptrace.Monotonic()
	r.endBatch()
	r.checkWide()
	if !r.over {
		r.keepPace()
	}
}

// checkWide ends the run if the events of the CPUs could not be opened again.
func (r *perfRun) checkWide() {
	r.failed = cmp.Or(r.failed, r.wide.failed)
}

func (r *perfRun) beginBatch(number uint64) { r.batch, r.sampled = number, r.sampled[:0] }

// endBatch adapts the events of the threads that had samples.
func (r *perfRun) endBatch() {
	if r.over {
		return // all events are closed
	}
	for _, th := range r.sampled {
		th.lacks = int64(th.charged-min(th.from, th.charged))/int64(r.cfg.Interval) - th.counted
		if !th.hasEvents() {
			r.wide.fit(&th.copies)
			continue
		}
		r.adapt(th)
		if r.threads[th.tid] == th {
			r.arm(th)
		}
	}
}

// Record is described at ring.Taker.
func (r *perfRun) Record(b ring.Bytes, rec ring.Record) {
	if !b.Parse(rec, r.perf.CPU, r.inKernel() == ring.KernelFrames, &r.sample) {
		r.Lose(ptrace.Failed, 1)
	} else if r.sample.PID == r.perf.PID {
		r.take(b, &r.sample)
	}
}

// Lose counts n lost samples. Like a taken sample, each stood for as many as the factor says.
func (r *perfRun) Lose(o ptrace.Outcome, n int64) {
	stood := n * int64(max(r.thin.factor, 1))
	if !r.grouped && (o == ptrace.RingFull || o == ptrace.QueueFull) {
		r.thin.lose(n, stood)
	}
	r.stats.Attempted += stood
	r.stats.Lost[o] += stood
}

// take makes a snapshot from a sample and hands the snapshot over.
func (r *perfRun) take(b ring.Bytes, s *ring.Sample) {
	if s.When < r.began || r.isAnothers(s.When) {
		return // no account has its CPU time
	}
	th, known := r.whoIs(s)
	if known != nil {
		r.rings.checker.know(s.TID, &known.Hint)
	}
	if known != nil && known.Hint.Skip || !r.counts(th, s.When) {
		return
	}
	if !s.HasRegs {
		r.Lose(ptrace.NoRegisters, 1)
		return
	}
	snap := r.q.Take()
	if snap == nil {
		r.Lose(ptrace.QueueFull, 1)
		return
	}
	var hint ptrace.Hint
	if known != nil {
		hint = known.Hint
	}
	need := b.Fill(s, r.perf.CPU, hint, snap)
	snap.Count = r.countsFor(th, s)
	if th != nil {
		r.note(th, s, need)
		extra := r.thin.makeUp(&th.lacks)
		r.stats.MadeUp += extra
		snap.Count += extra
		th.counted += snap.Count
		r.bill(th, known, snap)
	}
	if th != nil && th.copier != nil {
		th.copier.take(s.When, int64(r.cfg.Interval), &snap.Snapshot)
	}
	r.cfg.ReadSoon(snap, th != nil && th.hasEvents())
	r.stats.Attempted += snap.Count
	r.stats.Taken += snap.Count
	r.q.Keep(snap)
}

// isAnothers reports whether a sample may belong to a later process with the same number. While the process has not
// ended, no sample can.
func (r *perfRun) isAnothers(when int64) bool {
	if !r.stats.Ended && !r.proc.Ended() {
		return false
	}
	r.stats.Ended = true // a group then ends the member in this turn
	return when >= r.proc.PassedOn()
}

func (r *perfRun) whoIs(s *ring.Sample) (*perfThread, *threads.Thread) {
	if r.threads[s.TID] == nil {
		return r.meet(s.TID)
	}
	return r.threads[s.TID], r.scan.ByTID[s.TID]
}

// meet returns what is known of a thread without events of its own. If the thread is not listed yet, meet looks it up
// now. Of a thread that has ended since, nothing is known.
func (r *perfRun) meet(tid int) (*perfThread, *threads.Thread) {
	r.scan.Now = r.now
	known := r.scan.Find(tid)
	if known == nil || !r.scan.Lives(known) {
		return nil, nil
	}
	w := &perfThread{tid: tid, th: known, from: known.Last.Ran - min(known.Last.Ran, uint64(known.Spent))}
	r.threads[tid] = w
	return w, known
}

// counts reports whether a sample counts. Samples by the events of the CPUs do not count for a thread that has its own
// events.
func (r *perfRun) counts(th *perfThread, when int64) bool {
	if th == nil {
		return true
	}
	if own := th.hasEvents(); own == r.rings.isSteady() {
		return false
	} else if !own {
		return true
	}
	return th.events[r.rings.cpu].accept(when, r.interval())
}

// Abilities is described at sampler.Engine.
func (p *Engine) Abilities() sampler.Abilities { return sampler.Abilities{ReadsLate: true} }
