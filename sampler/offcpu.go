//go:build linux

package sampler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// Off-CPU time by context switches. The kernel notes each switch of each thread of the process: when the thread left
// its CPU, with its registers and a copy of its stack, and when it got one again. Nothing is sampled: the times are
// exact, and each wait has the stack with which it began. Nobody is stopped.
//
// What a thread waits for (which lock, which file) no record says. A thread that is still waiting when its record is
// read, some ms later, is looked at as Wall does, without a stop; that look counts for the whole wait if the thread's
// next record says that it did not run meanwhile. Shorter waits have their stack alone.
//
// Threads that begin later inherit the events. A thread that was listed while another one made it may have two of each:
// a switch that was noted already is left out.

// OffCPUOptions say which waits are wanted.
type OffCPUOptions struct {
	Min    time.Duration    // shorter ones are counted, and have no stack
	During func(*look.Look) // WallOptions.During
}

// OffCPUCounts is what an OffCPU has found.
type OffCPUCounts struct {
	Waits, Short int64         // Short: below Min
	ShortFor     time.Duration // how long those took together
	Dropped      int64         // records for which the kernel had no room: after that each thread begins anew
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
	// offStack is how much of a stack each record has. 10,000 switches a second are 160 MB.
	offStack = 16 << 10
	// offTries is how often it is tried to look at one wait.
	offTries = 3
	// offSettle is how often a wait that goes on is counted so far.
	offSettle = int64(time.Second)
	// offBatch bounds the copies of stacks that are kept of one reading.
	offBatch = 64 << 20
	// mostHeld bounds the looks that wait for the proof that they are of one wait.
	mostHeld = 64
)

// offRun is one run on its own OS thread.
type offRun struct {
	capture
	off     *OffCPU
	pid     int
	cpu     *arch.CPU
	opt     OffCPUOptions
	rings   []*perfRing
	cpus    []int
	fds     []int
	each    func(ringBytes, perfRecord)
	sample  rawSample
	threads map[int]*offThread
	known   map[int]ptrace.Hint
	records []offRecord
	arena   []byte
	counts  OffCPUCounts
	held    int
	settled int64
	pruneAt int // how many threads are known when ended ones are looked for
}

// offThread is one thread.
type offThread struct {
	tid     int
	out     int64 // since when it has been off its CPU; 0: it is on one, or that is not known
	taken   bool  // its CPU was taken from it: it is ready to run
	counted int64 // until when the look has been counted
	tally   *look.Tally
	copied  offCopy // the stack with which it left
	looked  int64   // when the look was done that is held
	snap    *look.Look
	tries   int
}

// offCopy is what a record of a switch has copied.
type offCopy struct {
	when    int64
	regs    arch.Regs
	unknown uint64
	has     bool
	owned   bool // stack is no part of offRun.arena
	stack   []byte
	cut     bool
}

// own makes the copy outlive the reading that it comes from.
func (c *offCopy) own() {
	if !c.owned {
		c.stack, c.owned = slices.Clone(c.stack), true
	}
}

// offRecord is a record that was read.
type offRecord struct {
	when int64
	tid  int
	kind offKind
	copy offCopy
}

type offKind uint8

const (
	offStackOf offKind = iota // a thread is about to leave its CPU: its stack
	offOut
	offOutReady // it did not want to
	offIn
)

func (o *OffCPU) run(ctx context.Context, cfg Config, q *Queue,
	proc *procfs.Dir, t *ptrace.Tracer) (Stats, error) {
	r := &offRun{capture: newCapture(t, proc, &o.progress, ctx.Done(), cfg, q), off: o, pid: o.pid, cpu: o.cpu, opt: o.opt,
		threads: map[int]*offThread{}, known: map[int]ptrace.Hint{}}
	r.late, r.sum, r.each = func(*look.Look, ptrace.Outcome) {}, r.total, r.read
	defer r.close()
	if err := r.open(); err != nil {
		return Stats{}, err
	}
	return r.runInShifts(r.loop, r.finishAll)
}

// offAttr asks for all switches of a thread, and those that it begins: a sample where it leaves its CPU, and a record
// where it leaves it and where it gets one.
func offAttr(cpu *arch.CPU) unix.PerfEventAttr {
	attr := perfAttr(cpu, 1, offStack, inKernel, false)
	attr.Config = unix.PERF_COUNT_SW_CONTEXT_SWITCHES
	attr.Bits |= unix.PerfBitContextSwitch | unix.PerfBitSampleIDAll | unix.PerfBitInherit
	return attr
}

// TryOffCPU finds out whether the kernel tells us the switches of a process.
func TryOffCPU(pid int) error {
	power, err := TryPerf(pid)
	if err == nil && !power.Kernel {
		err = &PerfError{"perf_event_open", unix.EACCES}
	}
	return err
}

func (r *offRun) open() error {
	raiseFileLimit()
	r.cpus = onlineCPUs()
	holder := holderAttr()
	for _, cpu := range r.cpus {
		ring, err := openRing(cpu, eventRingShare(len(r.cpus)), ringLeast, &holder)
		if err != nil {
			return err
		}
		r.rings = append(r.rings, ring)
	}
	attr := offAttr(r.cpu)
	seen := map[int]bool{}
	const tries = 16
	for range tries {
		var tids []int
		r.proc.Threads(make([]byte, listBytes), func(tid int) { tids = append(tids, tid) })
		fresh := 0
		for _, tid := range tids {
			if seen[tid] {
				continue
			}
			seen[tid] = true
			fresh++
			for i, cpu := range r.cpus {
				fd, err := openEvent(&attr, tid, cpu, r.rings[i])
				if err == nil {
					r.fds = append(r.fds, fd)
				} else if !isErrno(err, unix.ENODEV) && !isErrno(err, unix.ESRCH) {
					return err
				}
			}
			r.threads[tid] = &offThread{tid: tid}
		}
		if fresh == 0 {
			break
		}
	}
	return nil
}

func (r *offRun) close() {
	for _, fd := range r.fds {
		unix.Close(fd)
	}
	for _, ring := range r.rings {
		ring.close()
	}
}

func (r *offRun) loop() {
	r.takeHints()
	if r.settled == 0 {
		r.drain(ptrace.Monotonic(&r.ts)) // of the time in which events were opened
		r.began = ptrace.Monotonic(&r.ts)
		r.settled = r.began
		r.findWaiting()
	}
	now := ptrace.Monotonic(&r.ts)
	for next := now + offTick; r.sleep(next); next = max(next+offTick, now+offTick/4) {
		r.stats.Ticks++
		r.takeHints()
		r.drain(ptrace.Monotonic(&r.ts))
		r.lookAtWaiting()
		now = ptrace.Monotonic(&r.ts)
	}
}

func (r *offRun) takeHints() {
	r.off.hints.take(func(tid int, hint ptrace.Hint) bool {
		if len(r.known) >= mostKnown {
			clear(r.known)
		}
		r.known[tid] = hint
		return true
	}, true)
}

// findWaiting finds out who waits when the run begins. What for is asked as of waits that begin later.
func (r *offRun) findWaiting() {
	for tid, th := range r.threads {
		r.dropHeld(th)
		th.out, th.tally, th.copied.has, th.tries = 0, nil, false, 0
		if state, _ := r.proc.Status(tid); state == 'S' || state == 'D' {
			th.out, th.counted, th.taken = r.began, r.began, false
		}
	}
}

// drain reads the rings, and works off what happened before that moment: a CPU's records are in order, and those of
// several CPUs are whole up to it.
func (r *offRun) drain(until int64) {
	for _, ring := range r.rings {
		if ring.read(r.each) {
			r.dropAll(1)
		}
	}
	slices.SortStableFunc(r.records, func(a, b offRecord) int { return cmp.Compare(a.when, b.when) })
	n, worked := 0, false
	r.t.Apart(func() { // After may read the process's memory
		worked = true
		for ; n < len(r.records) && r.records[n].when < until; n++ {
			r.work(&r.records[n])
		}
	})
	if !worked { // too many reads have not come back
		r.dropAll(int64(len(r.records)))
		n = len(r.records)
	}
	rest := r.records[n:]
	for i := range rest {
		rest[i].copy.own()
	}
	for _, th := range r.threads { // also of one whose stack was noted, and not yet that it has left its CPU
		if th.copied.has && th.tally == nil {
			th.copied.own()
		}
	}
	r.records = append(r.records[:0], rest...)
	r.arena = r.arena[:0]
	r.settle(until)
}

// read keeps a record.
func (r *offRun) read(b ringBytes, rec perfRecord) {
	switch rec.kind {
	case perfSample:
		if s := &r.sample; b.parse(rec, r.cpu, false, s) && s.pid == r.pid && len(r.arena) < offBatch {
			c := offCopy{when: s.when, regs: s.regs, unknown: s.unknown, has: s.hasRegs}
			size, cut := r.sizeOf(s)
			from := len(r.arena)
			r.arena = slices.Grow(r.arena, size)[:from+size]
			c.stack, c.cut = r.arena[from:from+size:from+size], cut
			b.copyTo(c.stack, s.stackAt)
			r.records = append(r.records, offRecord{when: s.when, tid: s.tid, kind: offStackOf, copy: c})
		}
	case perfSwitch:
		if rec.end-rec.at < 16 || int(int32(b.u32(rec.at))) != r.pid {
			return
		}
		x := offRecord{tid: int(int32(b.u32(rec.at + 4))), when: int64(b.u64(rec.at + 8)), kind: offIn}
		if rec.misc&perfMiscSwitchOut != 0 {
			if x.kind = offOut; rec.misc&perfMiscSwitchReady != 0 {
				x.kind = offOutReady
			}
		}
		r.records = append(r.records, x)
	case perfLost, perfLostSamples:
		r.dropAll(b.parseLost(rec))
	}
}

// sizeOf is how much of what was copied is the thread's stack.
func (r *offRun) sizeOf(s *rawSample) (size int, cut bool) {
	size = s.stackLen
	hint, sp := r.known[s.tid], s.regs[r.cpu.SP]
	cut = size == s.asked
	if hint.StackTop > sp && sp >= hint.StackLow {
		need := hint.StackTop - sp
		cut = uint64(size) < need
		size = int(min(uint64(size), need))
	}
	return size, cut
}

// dropAll: records are missing. Which thread waits is not known any more.
func (r *offRun) dropAll(n int64) {
	r.counts.Dropped += n
	r.stats.Attempted += n
	r.stats.Lost[ptrace.RingFull] += n
	for _, th := range r.threads {
		r.dropHeld(th)
		th.out, th.tally, th.copied.has = 0, nil, false
	}
}

// work deals with one record.
func (r *offRun) work(x *offRecord) {
	th := r.threads[x.tid]
	if th == nil {
		if len(r.threads) >= mostKnown {
			return
		}
		th = &offThread{tid: x.tid}
		r.threads[x.tid] = th
	}
	switch x.kind {
	case offStackOf:
		if th.out == 0 {
			th.copied = x.copy
		}
	case offOut, offOutReady:
		if th.out != 0 {
			return // a second record of one switch
		}
		th.out, th.counted, th.taken, th.tally, th.tries = x.when, x.when, x.kind == offOutReady, nil, 0
		th.copied.has = th.copied.has && x.when-th.copied.when < int64(time.Millisecond)
	case offIn:
		if th.out != 0 {
			r.finish(th, x.when)
		}
	}
}

// finish ends a thread's wait.
func (r *offRun) finish(th *offThread, at int64) {
	if th.snap != nil {
		if at >= th.looked {
			r.pass(th, at)
		} else {
			r.dropHeld(th)
		}
	}
	length := at - th.out
	switch {
	case th.tally != nil:
		th.tally.Add(1, time.Duration(at-th.counted), at)
	case time.Duration(length) < r.opt.Min:
		r.counts.Short++
		r.counts.ShortFor += time.Duration(length)
	default:
		r.passCopy(th, at)
	}
	if time.Duration(length) >= r.opt.Min {
		r.counts.Waits++
	}
	th.out, th.tally, th.copied.has = 0, nil, false
}

// pass hands over the look that is held: it is of this wait.
func (r *offRun) pass(th *offThread, until int64) {
	snap := th.snap
	th.snap = nil
	r.held--
	if time.Duration(until-th.out) < r.opt.Min {
		r.q.Done(snap)
		return
	}
	snap.When = th.out
	r.put(th, snap, 0, until)
}

// put hands a look over, which counts for the wait until that moment. It counts once when the wait has ended: so it is
// told once, with all of its time.
func (r *offRun) put(th *offThread, snap *look.Look, n, until int64) {
	th.tally = new(look.Tally)
	th.tally.Add(n, time.Duration(until-th.counted), until)
	th.counted = until
	snap.Tally = th.tally
	r.stats.Attempted++
	r.stats.Taken++
	r.q.put(snap)
}

// passCopy hands over the stack with which the thread left its CPU.
func (r *offRun) passCopy(th *offThread, until int64) {
	if r.known[th.tid].Skip {
		return
	}
	snap := r.q.take()
	if snap == nil || !th.copied.has {
		r.stats.Attempted++
		if snap == nil {
			r.stats.Lost[ptrace.QueueFull]++
			return
		}
		r.stats.Lost[ptrace.NoRegisters]++
		r.q.Done(snap)
		return
	}
	c := &th.copied
	snap.When, snap.TID = th.out, th.tid
	snap.Regs, snap.Unknown, snap.SP, snap.Cut = c.regs, c.unknown, c.regs[r.cpu.SP], c.cut
	snap.Stack = append(snap.Stack[:0], c.stack...)
	snap.SideAddr, snap.RunsOn = r.known[th.tid].Side, true
	snap.Waiting = look.Waiting{State: 'S', ByStack: true}
	if th.taken {
		snap.Waiting = look.Waiting{State: 'R', NoCPU: true}
	}
	if r.t.After != nil {
		r.t.After(snap, th.out)
	}
	r.put(th, snap, 1, until)
}

func (r *offRun) dropHeld(th *offThread) {
	if th.snap != nil {
		r.q.Done(th.snap)
		th.snap = nil
		r.held--
	}
}

// lookAtWaiting looks at threads that wait since before the records were read, for what. Looks of the tick before are
// handed over: no record has said that the thread ran since.
func (r *offRun) lookAtWaiting() {
	now := ptrace.Monotonic(&r.ts)
	for tid, th := range r.threads {
		switch {
		case th.out == 0:
		case th.snap != nil && now-th.looked > offTick/2 && time.Duration(now-th.out) >= r.opt.Min:
			r.pass(th, th.looked)
		case th.snap != nil || th.tally != nil || th.tries >= offTries || th.taken || r.held >= mostHeld || r.known[tid].Skip:
		case time.Duration(now-th.out) >= r.opt.Min:
			r.lookAt(th)
		}
	}
}

func (r *offRun) lookAt(th *offThread) {
	snap := r.q.take()
	if snap == nil {
		return
	}
	th.tries++
	o := r.t.LookUnstoppedDuring(th.tid, r.known[th.tid], snap, r.opt.During)
	if o != ptrace.Taken {
		r.q.Done(snap)
		r.checkEnd(o)
		if o == ptrace.ThreadGone || o == ptrace.Zombie { // its last switch was its end
			delete(r.threads, th.tid)
		}
		return
	}
	th.snap, th.looked = snap, ptrace.Monotonic(&r.ts)
	r.held++
	r.stats.Looks.Unstopped++
}

// settle counts waits that go on.
func (r *offRun) settle(until int64) {
	if until-r.settled < offSettle {
		return
	}
	r.settled = until
	r.prune()
	for _, th := range r.threads {
		if th.out != 0 && th.tally != nil && until > th.counted {
			th.tally.Add(0, time.Duration(until-th.counted), until)
			th.counted = until
		}
	}
}

// leastPruned is how many threads are known at least when ended ones are looked for.
const leastPruned = 256

// prune forgets threads that have ended. No record says that: the kernel takes a thread's events off before it leaves
// its CPU for the last time (kernel/exit.c, do_exit), so they are taken for running. Each would be visited in each
// tick.
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

// finishAll ends all waits: the run is over.
func (r *offRun) finishAll() {
	now := ptrace.Monotonic(&r.ts)
	r.drain(now)
	for _, th := range r.threads {
		if th.out != 0 && now > th.out {
			r.finish(th, now)
		}
	}
}

func (r *offRun) total() Stats {
	s := r.soFar()
	s.Threads = len(r.threads)
	s.Looks.Voids = r.t.Voids
	s.OffCPU = r.counts
	return s
}

// isErrno reports whether an error is that of the system.
func isErrno(err error, e syscall.Errno) bool { return errors.Is(err, e) }
