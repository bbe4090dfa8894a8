//go:build linux

package sampler

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler/ptrace"
)

// The second engine: perf_event_open(2). Nobody is stopped. The kernel itself keeps a timer for each thread. The timer
// runs while the thread runs. In the timer's interrupt the kernel writes the thread's registers and a copy of its stack
// into memory that we share with the kernel. So a sample costs the thread that interrupt and no more, and falls at a
// moment that nothing of ours has chosen.
//
// What differs for those who use the snapshots:
//   - The copy of a stack ends at 64 KB (PerfStack), and at a page that was never used or is swapped out: an
//     interrupt cannot wait for it. A longer stack is Cut.
//   - Nothing else is copied in that moment: there is no Side, Followed and Under. A walk that needs the frame anchor
//     (native code without unwind information, a signal on a stack of its own) ends there. Threads with Hint.Soon are
//     an exception where the kernel takes a program from us (perf_copy.go): their Side, and what the trail leads to,
//     are copied in that moment, too.
//   - The thread runs on meanwhile. What is to be read soon afterwards (Config.After) is read some 50 us later for
//     these threads. Of the others it is noted within some milliseconds which code is new (Config.Note).
//
// There is one event for each CPU, and a program of ours keeps the kernel from taking samples of other processes
// (perf_wide.go). Threads with Hint.Soon have events of their own, since each has a program of its own
// (perf_threads.go). Threads are listed as for the other engine, whose account of CPU time this is, too (bill.go).

// Perf samples the threads of one process through perf_event.
type Perf struct {
	progress
	hints
	waker  waker
	pid    int
	cpu    *arch.CPU
	kernel bool
}

// NewPerf makes a sampler of pid.
func NewPerf(pid int, cpu *arch.CPU) *Perf {
	p := &Perf{progress: newProgress(), pid: pid, cpu: cpu}
	p.wake = p.waker.wake
	return p
}

// WantKernel asks for the kernel's frames, too: Look.Kernel. Call WantKernel before Run.
func (p *Perf) WantKernel() { p.kernel = true }

// ErrPerfOverhead: Config bounds the cost of samples, but nothing tells what an interrupt of the kernel costs.
var ErrPerfOverhead = errors.New("sampler: perf_event does not tell what a sample costs, so that it cannot be bounded")

// Run is Sampler.Run.
func (p *Perf) Run(ctx context.Context, cfg Config, q *Queue) (Stats, error) {
	return p.runEngine(cfg, q, func() (stats Stats, err error) {
		if cfg.MaxOverhead > 0 {
			return Stats{}, ErrPerfOverhead
		}
		// Perf holds no thread: goprof may be stopped at any time
		ptrace.OnThreadHoldingNobody(func() {
			ptrace.LeaveInPeace()
			stats, err = p.run(ctx, cfg, q)
		})
		return stats, err
	})
}

const (
	// perfLook is the mean time between two looks at which threads have run. All that can wait is done at these looks,
	// but that looks are handed over more often in a run that has just begun (Queue.patience).
	perfLook = keptFor
)

// perfRun is one sampling session on its own OS thread.
type perfRun struct {
	perf       *Perf
	cfg        Config
	q          *Queue
	proc       *procfs.Dir
	scan       *scan
	stats      Stats
	rng        *rand.Rand
	asked      cpusAsked
	online     []int // the CPUs that were on then
	rings      *perfRings
	wide       *wideEvents
	thin       paceKeeper
	grouped    bool // rings and wide are a group's
	threads    map[int]*perfThread
	events     int // of threads, that are open
	mostEvents int
	round      uint32 // of the scan's listing that was seen last
	failed     error
	over       bool // and all threads have been read a last time
	copiers    int
	noCopies   bool // the kernel refuses our programs for copies

	// The reading of the rings that is under way.
	sample  rawSample
	batch   uint64
	sampled []*perfThread // that have new samples
	now     int64
	handed  int64 // when all was handed over last

	began      int64
	cpuAtStart time.Duration
	sentryCPU  time.Duration // of sentries that were dismissed
}

func (p *Perf) run(ctx context.Context, cfg Config, q *Queue) (Stats, error) {
	r := newPerfRun(p, cfg, q)
	defer r.proc.Close()
	if !r.proc.Exists() {
		return Stats{}, ErrNoProcess
	}
	if err := r.open(); err != nil {
		return Stats{}, err
	}
	defer r.close()
	if err := r.listen(); err != nil {
		return Stats{}, err
	}
	defer p.waker.close()
	defer context.AfterFunc(ctx, p.wake)()
	r.begin()
	r.post()
	r.loop(ctx)
	r.end()
	return r.sum(), r.failed
}

// begin begins the account, when there are events. What the process used before has no sample, and to open events takes
// long where CPUs are short.
func (r *perfRun) begin() {
	r.began, r.cpuAtStart = ptrace.Monotonic(), threadCPU()
	r.scan.beginBills()
	r.q.waitFor(r.cfg.Lean, r.began)
}

// end ends the account together with the events, and then takes what they have left in the rings.
func (r *perfRun) end() {
	r.scan.bills.stop()
	r.wide.closeEvents()
	r.dismiss()
	r.scan.readAllCharges()
	r.over = true
	r.drain()
	r.q.handOver()
}

// listen has the end of the process end a sleep, and wake.
func (r *perfRun) listen() error {
	if err := r.perf.waker.open(); err != nil {
		return err
	}
	for _, fd := range []int{r.perf.waker.fd, r.proc.EndFD()} { // ppoll leaves out what is negative
		r.rings.polls = append(r.rings.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	return nil
}

// post posts a sentry where each sample would wake us up. What can wait is read when we look around.
func (r *perfRun) post() {
	if r.cfg.KnownIn == nil || !eachWakes(int64(r.cfg.Interval)) {
		return
	}
	r.rings.post(r.perf.cpu, r.inKernel() == kernelFrames, 0)
	if r.rings.sentry != nil {
		ptrace.PreemptsAtOnce(r.rings.sentry.th.TID())
	}
	r.rings.sentry.watch(r.perf.pid, r.q, r.cfg.KnownIn)
}

// dismiss ends the sentry.
func (r *perfRun) dismiss() {
	r.sentryCPU += r.rings.sentry.cpu()
	r.rings.sentry.leave(r.perf.pid, r.cfg.KnownIn)
	r.rings.dismiss()
}

func newPerfRun(p *Perf, cfg Config, q *Queue) *perfRun {
	if cfg.Online == nil {
		cfg.Online = onlineCPUs
	}
	return &perfRun{perf: p, cfg: cfg, q: q, proc: procfs.OpenDir(p.pid),
		threads: map[int]*perfThread{}, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
}

func (r *perfRun) open() (err error) {
	if err = mayWatch(r.perf.pid); err != nil {
		return err
	}
	r.asked, r.online = askedNow(), r.cfg.Online()
	if r.rings, err = openPerfRings(r.online, ringShare(len(r.online), ringMost)); err != nil {
		return err
	}
	fds := raiseFileLimit()
	r.mostEvents = min(fds/2, mostEvents)
	r.scan = newScan(r.proc, r.cfg.Interval, fds-r.mostEvents)
	r.scan.pools = true
	if err = r.watchWide(); err != nil {
		r.close()
	}
	return err
}

// inKernel is what is wanted of threads in the kernel.
func (r *perfRun) inKernel() perfKernel {
	if r.perf.kernel {
		return kernelFrames
	}
	return inKernel
}

// watchWide opens events of the CPUs.
func (r *perfRun) watchWide() error {
	filter, err := filterProgram(r.perf.pid).loadForPerf(nil)
	if err != nil {
		return &PerfError{"bpf", err}
	}
	r.wide = &wideEvents{rings: r.rings, cpu: r.perf.cpu, kernel: r.inKernel(), interval: int64(r.cfg.Interval),
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
	r.scan.close()
}

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
			r.stats.Ended = true
			return
		}
		r.now = ptrace.Monotonic()
		looks := r.now >= due
		r.perf.take(r.setHint, false)
		r.drain()
		if looks {
			began := r.now
			r.lookAround()
			due = r.nextLookAround(began)
			r.wide.next = due
			r.wide.redraw(r.now)
		}
		r.handOver(looks)
		r.perf.answer(r.sum)
		r.rings.wait(r.nextMoment(due), eachWakes(int64(r.cfg.Interval)))
		r.perf.waker.settle()
	}
}

// nextMoment is when there is something to do. Where looks around are far apart, all waits for the next one, but in a
// hurry, or in a run that has just begun.
func (r *perfRun) nextMoment(due int64) int64 {
	if r.q.wait(r.now) == keptFor {
		return due
	}
	return min(due, r.handAt())
}

// handAt is when to hand over all that waits. How long looks may wait grows with the run. If
// it grew while we sleep for that long, we would wake up too early, and once more soon afterwards.
func (r *perfRun) handAt() int64 { return r.handed + min(r.q.wait(r.now), r.q.wait(r.handed)) }

// handOver hands over what has waited long enough.
func (r *perfRun) handOver(looks bool) {
	if looks || r.now >= r.handAt() {
		r.q.handOver()
		r.handed = r.now
	}
}

// lookAround finds out which threads there are and which have run.
func (r *perfRun) lookAround() {
	r.scan.begin()
	r.followCPUs()
	r.perf.take(r.setHint, true)
	r.scan.update()
	r.watchAll()
	r.stats.Ticks++
}

// nextLookAround is when to look around again. That moment is random, so that it is in step with nothing. Looking
// around costs at most a tenth of a CPU.
func (r *perfRun) nextLookAround(began int64) int64 {
	took := ptrace.Monotonic() - began
	return began + max(perfLook/2+r.rng.Int64N(perfLook), 10*took)
}

// setHint notes what is known of a thread, and reports whether the thread is in the list.
func (r *perfRun) setHint(tid int, hint ptrace.Hint) bool {
	if th := r.threads[tid]; th != nil && (hint.Skip || hint.Soon != th.hasEvents()) {
		r.unwatch(th) // it may be watched again in another way
	}
	return r.scan.setHint(tid, hint)
}

func (r *perfRun) sum() Stats {
	s := r.stats
	s.Threads = len(r.scan.byTID)
	s.Interval = r.cfg.Interval
	s.Wall = time.Duration(ptrace.Monotonic() - r.began)
	if !r.grouped {
		s.CPU = threadCPU() - r.cpuAtStart + r.sentryCPU + r.rings.sentry.cpu()
	}
	s.Times = r.scan.bills.sum(r.scan.byTID, r.over && !r.scan.pools, int64(r.cfg.Interval))
	if sampled := s.Times.Sampled; sampled > 0 {
		s.Reached = float64(s.Taken) / sampled.Seconds()
	}
	return s
}

// drain reads all rings.
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
	if r.failed == nil {
		r.failed = r.wide.failed
	}
}

// beginBatch begins with samples that are read together.
func (r *perfRun) beginBatch(number uint64) { r.batch, r.sampled = number, r.sampled[:0] }

// endBatch fits the events of the threads that had samples.
func (r *perfRun) endBatch() {
	if r.over {
		return // there are no events any more
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

// record is recordTaker.record.
func (r *perfRun) record(b ringBytes, rec perfRecord) {
	if !b.parse(rec, r.perf.cpu, r.inKernel() == kernelFrames, &r.sample) {
		r.lose(ptrace.Failed, 1)
	} else if r.sample.pid == r.perf.pid {
		r.take(b, &r.sample)
	}
}

// lose counts n samples that are lost. Each stood for as many as the factor says, as a sample that is taken does.
func (r *perfRun) lose(o ptrace.Outcome, n int64) {
	stood := n * int64(max(r.thin.factor, 1))
	if !r.grouped && (o == ptrace.RingFull || o == ptrace.QueueFull) {
		r.thin.lose(n, stood)
	}
	r.stats.Attempted += stood
	r.stats.Lost[o] += stood
}

// take makes a snapshot from a sample and hands the snapshot over.
func (r *perfRun) take(b ringBytes, s *rawSample) {
	if s.when < r.began {
		return // its CPU time is in no account
	}
	th, known := r.whoIs(s)
	if known != nil {
		r.rings.sentry.know(s.tid, &known.hint)
	}
	if known != nil && known.hint.Skip || !r.counts(th, s.when) {
		return
	}
	if th == nil && r.grouped && r.proc.Ended() {
		return // its number may have passed to another process
	}
	if !s.hasRegs {
		r.lose(ptrace.NoRegisters, 1)
		return
	}
	snap := r.q.take()
	if snap == nil {
		r.lose(ptrace.QueueFull, 1)
		return
	}
	var hint ptrace.Hint
	if known != nil {
		hint = known.hint
	}
	need := b.fill(s, r.perf.cpu, hint, snap)
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
		th.copier.take(s.when, int64(r.cfg.Interval), &snap.Snapshot)
	}
	r.cfg.readSoon(snap, th != nil && th.hasEvents())
	r.stats.Attempted += snap.Count
	r.stats.Taken += snap.Count
	r.q.keep(snap)
}

// whoIs returns what is known of the thread of a sample.
func (r *perfRun) whoIs(s *rawSample) (*perfThread, *thread) {
	if r.threads[s.tid] == nil {
		return r.meet(s.tid)
	}
	return r.threads[s.tid], r.scan.byTID[s.tid]
}

// meet returns what is known of a thread that has no events of its own. A thread that is not listed yet is looked up
// now. If it has ended since, nothing is known of it.
func (r *perfRun) meet(tid int) (*perfThread, *thread) {
	r.scan.now = r.now
	known := r.scan.find(tid)
	if known == nil || !r.scan.lives(known) {
		return nil, nil
	}
	w := &perfThread{tid: tid, th: known, from: known.last.Ran - min(known.last.Ran, uint64(known.spent))}
	r.threads[tid] = w
	return w, known
}

// counts tells whether a sample counts. If a thread has events of its own, its samples by events of the CPUs do not
// count.
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

func readSmall(name string, buf []byte) []byte {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, _ := unix.Read(fd, buf)
	return buf[:max(n, 0)]
}
