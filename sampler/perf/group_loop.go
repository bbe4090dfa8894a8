//go:build linux

package perf

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler"
	"goprof/sampler/cpuset"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/threads"
)

// listGrouped is Upkeep.Relist of a member. It is long, because a thread that is not listed yet is found at its first
// sample.
const listGrouped = int64(5 * time.Second)

// groupRing is the size of a group's rings. A CPU has at most one sample in an interval, and the sample is read soon.
const groupRing = 2 * ring.Least

type perfGroupRun struct {
	*Group
	ctx        context.Context
	chooser    *chooser
	rings      *perfRings
	wide       *wideEvents
	waiter     *ring.Waiter // waits for rings.polls, when these were waited many
	waited     int
	members    map[int]*Member
	last       *Member // the member of the last sample
	batch      uint64
	sampled    []*Member // the members of this batch
	sample     ring.Sample
	asked      cpuset.Asked
	online     []int // the CPUs that were on at the last turn
	anew       bool  // the events must be opened again even if the CPUs are the same
	now        int64
	due        int64 // when the next turn is due
	away       bool  // goprof itself was stopped
	failed     error
	rng        *rand.Rand
	checkerCPU time.Duration // CPU time of the checker that is already counted
}

// Run samples until ctx is done. If events of CPUs are not permitted, it returns ErrNoWide at once. Run is called once.
func (g *Group) Run(ctx context.Context) error {
	r := &perfGroupRun{Group: g, ctx: ctx, members: map[int]*Member{},
		rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	defer r.endAll()
	if err := r.prepare(); err != nil {
		r.failed = err
		return err
	}
	defer r.chooser.close()
	if r.failed = r.waker.open(); r.failed != nil {
		return r.failed
	}
	defer r.waker.close()
	defer context.AfterFunc(ctx, g.waker.wake)()
	for again := true; again; again = r.failed == nil && r.Await(ctx) {
		r.shift()
	}
	return r.failed
}

// prepare checks that events of CPUs are available.
func (r *perfGroupRun) prepare() error {
	err := mayWatch(0)
	if err != nil {
		return errors.Join(ErrNoWide, err)
	}
	if r.chooser, err = newChooser(); err != nil {
		return errors.Join(ErrNoWide, &ring.Error{Call: "bpf", Err: err})
	}
	if !r.open() {
		r.chooser.close()
		return ErrNoWide
	}
	r.close()
	return nil
}

func (r *perfGroupRun) open() bool {
	var err error
	r.asked, r.online = cpuset.AskedNow(), cpuset.Online()
	if r.rings, err = openPerfRings(slices.Clone(r.online), ring.Share(len(r.online), groupRing),
		r.chooser.spans, r.chooser.outputs); err != nil {
		return false
	}
	interval := int64(r.Interval())
	most := min(ring.StackFor(r.rings.size), r.MaxStack)
	r.wide = &wideEvents{rings: r.rings, cpu: r.cpu, kernel: ring.InKernel, interval: interval, filter: r.chooser.prog,
		most: most, copies: stackFit{stack: most}, rng: r.rng}
	if r.wide.open() != nil {
		r.rings.close()
		return false
	}
	return true
}

func (r *perfGroupRun) close() {
	r.wide.closeEvents()
	r.rings.close()
}

func (r *perfGroupRun) endAll() {
	for _, m := range r.End(r.failed) {
		m.result <- r.WhyEnded()
	}
}

// shift takes samples until no member is left.
//
// Unlike an engine of one process, it waits through Go's poller, as Go's connections do (ring/wait.go), and without
// real-time priority, because a group never ends. A thread that sleeps in a system call unknown to Go's scheduler keeps
// one of Go's processors and delays each garbage collection, and waking it involves other OS threads. At 19 Hz this was
// half of the CPU time that an agent used.
func (r *perfGroupRun) shift() {
	r.now, r.due = 0, 0
	if !r.open() {
		r.failed = ErrNoWide
		return
	}
	defer ptrace.RestSysmon()()
	defer func() {
		r.stopChecker()
		r.close()
	}()
	r.rings.polls = append(r.rings.polls, unix.PollFd{Fd: int32(r.waker.fd), Events: unix.POLLIN})
	r.startChecker()
	for r.ctx.Err() == nil && r.failed == nil {
		due, over := r.turn()
		if over {
			break
		}
		r.wait(due)
	}
	for pid := range r.members {
		r.endMember(pid, r.failed)
	}
}

// startChecker starts a checker, which knows all members.
func (r *perfGroupRun) startChecker() {
	r.rings.startChecker(r.cpu, false, eachWakes(r.wide.interval))
	for _, m := range r.members {
		r.rings.checker.watch(m.PID, m.run.q, m.run.cfg.KnownIn)
	}
}

func (r *perfGroupRun) stopChecker() {
	for _, m := range r.members {
		r.rings.checker.leave(m.PID, m.run.cfg.KnownIn)
	}
	r.countChecker()
	r.checkerCPU = 0
	r.rings.stopChecker()
	r.waiter.Close()
	r.waiter = nil
}

// countChecker counts the CPU time that the checker has used since the last call.
func (r *perfGroupRun) countChecker() {
	if used := r.rings.checker.cpu(); used > 0 {
		r.Counts.CPU.Add(int64(used - r.checkerCPU))
		r.checkerCPU = used
	}
}

// turn makes one round of work, such as reading the rings. due is when the next round is due. over: no member is left.
func (r *perfGroupRun) turn() (due int64, over bool) {
	runtime.LockOSThread() // its CPU time is counted
	defer runtime.UnlockOSThread()
	began := sampler.ThreadCPU()
	now := ptrace.Monotonic()
	r.away = r.wasAway(now)
	r.now = now
	r.waker.settle() // first: a wake-up from now on brings another turn
	if r.takeIn(); len(r.members) == 0 {
		return 0, true
	}
	r.follow()
	r.drain()
	due = r.nextTurn()
	r.due = due
	r.sendAway()
	r.Counts.CPU.Add(int64(sampler.ThreadCPU() - began))
	r.countChecker()
	return due, false
}

// wasAway reports whether goprof itself was stopped, because this turn comes long after it was due.
func (r *perfGroupRun) wasAway(now int64) bool {
	return r.now != 0 && now-max(r.now, r.due) > threads.LongGap
}

// wait sleeps until there is something to do, or until due.
func (r *perfGroupRun) wait(due int64) {
	due = r.rings.nextLook(ptrace.Monotonic(), due)
	if r.waiter == nil || r.waited != len(r.rings.polls) {
		r.waiter.Close()
		if r.waiter, r.failed = ring.NewWaiter(r.rings.polls); r.failed != nil {
			return
		}
		r.waited = len(r.rings.polls)
	}
	if err := r.waiter.Wait(due, func() bool { return r.waker.woken.Load() || r.rings.hasNews() }); err != nil {
		r.failed = err
	}
}

// follow adapts the events to a new interval, and to CPUs that were switched on or off.
func (r *perfGroupRun) follow() {
	if interval := int64(r.Interval()); interval != r.wide.interval {
		r.stopChecker()
		r.wide.interval = interval
		for _, m := range r.members {
			m.run.setInterval(time.Duration(interval))
		}
		r.reopen()
		r.startChecker()
	}
	r.wide.redraw(r.now)
	if !r.asked.IsDue(r.now) {
		return
	}
	anew, before := r.asked.MissedMuch(r.now), r.online
	r.online = cpuset.Online()
	r.anew = r.anew || anew
	if !r.anew && !cpuset.HaveCome(before, r.online) {
		r.Counts.Unsampled.Store(0)
		return
	}
	fresh := r.rings.without(r.online)
	if !r.rings.takeIn(fresh) {
		r.online = before // try again at the next look
		r.Counts.Unsampled.Store(int64(len(fresh)))
		return
	}
	r.anew = false
	r.Counts.Unsampled.Store(0)
	r.stopChecker()
	defer r.startChecker()
	r.drain()
	r.reopen()
}

// reopen opens all events again, including those of single threads.
func (r *perfGroupRun) reopen() {
	for _, m := range r.members {
		m.run.unwatchAll()
	}
	if r.wide.reopen() != nil {
		r.failed = ErrNoWide
	}
}

func (r *perfGroupRun) drain() {
	r.batch++
	r.sampled = r.sampled[:0]
	r.rings.drain(r)
	r.now = ptrace.Monotonic()
	for _, m := range r.sampled {
		m.run.now = r.now
		m.run.endBatch()
	}
	if r.wide.failed != nil {
		r.failed = ErrNoWide
	}
}

// Record is described at ring.Taker.
func (r *perfGroupRun) Record(b ring.Bytes, rec ring.Record) {
	if !b.Parse(rec, r.cpu, false, &r.sample) {
		r.Lose(ptrace.Failed, 1)
	} else if m := r.members[r.sample.PID]; m != nil {
		r.take(m, b)
	}
}

// take gives a member its sample. For threads with events of their own, take draws the lot. For others the kernel has
// drawn it.
func (r *perfGroupRun) take(m *Member, b ring.Bytes) {
	if share := m.Share(); share < 1 && !r.rings.isSteady() && r.rng.Float64() >= share {
		return
	}
	if m.run.batch != r.batch {
		m.run.beginBatch(r.batch)
		m.run.now = r.now
		r.sampled = append(r.sampled, m)
	}
	m.busy, r.last = true, m
	r.Counts.Met.Add(1)
	m.Meet()
	m.run.take(b, &r.sample)
}

// Lose counts lost samples. Their process is not known: likely it is the one of the last sample.
func (r *perfGroupRun) Lose(o ptrace.Outcome, n int64) {
	if r.last != nil {
		r.last.run.Lose(o, n)
	}
}

// nextTurn refreshes the members, and returns when there is something to do again.
func (r *perfGroupRun) nextTurn() int64 { return min(r.refreshMembers(), r.wide.until) }

// refreshMembers brings a member's threads and accounts up to date, one member at a time, and hands over what has
// waited. It returns when there is something to do again.
func (r *perfGroupRun) refreshMembers() (due int64) {
	// At the pulse the samples that can wait are read. If a member joins or leaves, that ends the sleep, too.
	due = sampler.PulseAfter(r.now, sampler.KeptForLean)
	handOver := int64(math.MaxInt64)
	for pid, m := range r.members {
		if share := m.Share(); share != m.chosen && r.chooser.choose(pid, share) == nil {
			m.chosen = share
		}
		every := sampler.RefreshIdle
		switch {
		case m.Waiting.Load(): // Advise has named threads
			every = threads.ListEvery
		case m.busy:
			every = sampler.RefreshBusy
		}
		if sampler.IsAbout(r.now-m.kept, every) {
			r.refresh(m)
		}
		if m.IsAsked() {
			m.Answer(m.run.sum)
		}
		handOver = min(handOver, m.run.q.HandOverAt())
	}
	if r.now >= handOver { // all together: a wake-up costs more than most walks
		for _, m := range r.members {
			m.run.q.HandOver()
		}
		return due
	}
	return min(due, handOver)
}

func (r *perfGroupRun) refresh(m *Member) {
	c := m.run
	c.now = r.now
	if !r.away { // otherwise the CPU time of the gap is forgiven
		c.scan.Watched(r.now)
	}
	c.lookAround()
	m.kept, m.busy = r.now, false
	m.Answer(c.sum)
	if c.proc.Ended() {
		c.stats.Ended = true
	}
}

// takeIn makes members of the waiting processes. The kernel then takes samples of them. A process gets an error if it
// is a member already, or does not fit into the chooser's table.
func (r *perfGroupRun) takeIn() {
	for _, m := range r.Next() {
		if r.members[m.PID] != nil {
			m.result <- sampler.ErrTwice
			continue
		}
		m.run.join(r)
		m.run.stats.NoSpans = r.chooser.noSpans
		m.chosen = m.Share()
		if err := r.chooser.choose(m.PID, m.chosen); err != nil {
			m.run.leave()
			m.result <- err
			continue
		}
		r.members[m.PID] = m
		r.rings.checker.watch(m.PID, m.run.q, m.run.cfg.KnownIn)
		r.refresh(m)
	}
	r.Counts.Members.Store(int64(len(r.members)))
}

func (r *perfGroupRun) sendAway() {
	for pid, m := range r.members {
		stopped := false
		select {
		case <-m.stop:
			stopped = true
		default:
		}
		if stopped || m.run.stats.Ended || m.run.failed != nil {
			r.endMember(pid, m.run.failed)
		}
	}
}

func (r *perfGroupRun) endMember(pid int, why error) {
	m := r.members[pid]
	delete(r.members, pid)
	if r.last == m {
		r.last = nil
	}
	r.Counts.Members.Store(int64(len(r.members)))
	r.chooser.leaveOut(pid)
	r.rings.checker.leave(pid, m.run.cfg.KnownIn)
	m.run.leave()
	m.result <- why
}

// join makes a run part of a group, and gives it the group's rings and events of CPUs.
func (r *perfRun) join(g *perfGroupRun) {
	r.rings, r.wide, r.spans, r.grouped = g.rings, g.wide, g.rings.spans.Reader, true
	r.spans.Follow(r.perf.PID, r.cfg.Contexts)
	files := threads.GroupFiles()
	r.mostEvents = max(files, len(r.rings.cpus))
	r.scan = threads.New(r.proc, r.cfg.Interval, files)
	r.scan.Keep(threads.Upkeep{HotFor: threads.HotFor, Relist: listGrouped, Pools: true})
	r.began = ptrace.Monotonic()
	r.q.Begin(r.began)
}

// leave ends a run that is part of a group.
func (r *perfRun) leave() {
	r.unwatchAll()
	r.spans.Forget(r.perf.PID)
	r.q.HandOver()
	r.scan.ReadAllCharges()
	r.over = true
	r.stats = r.sum()
	r.scan.Close()
}

func (r *perfRun) setInterval(d time.Duration) {
	r.cfg.Interval, r.scan.Interval = d, int64(d)
}
