//go:build linux

package visit

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch/cpus"
	"goprof/sampler"
	"goprof/sampler/cpuset"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/threads"
)

const (
	// answerEvery bounds the time until a member's question is answered.
	answerEvery = int64(50 * time.Millisecond)
	// leaveWithin is how long a member that leaves waits for its late stops.
	leaveWithin = int64(time.Second)
	// After blindAfter visits that met no thread at all, the group takes the kernel's notes to be useless here.
	blindAfter = 2000
)

type groupRun struct {
	*Group
	ctx      context.Context
	visits   *visits
	lead     *ptrace.Tracer // holds the Runner while no member needs it
	members  map[int]*Member
	rng      *rand.Rand
	ts       unix.Timespec
	answered int64
	lastLoop int64
	pending  int           // late stops of all members
	patience time.Duration // how soon to look at them again
	renew    bool          // this OS thread may hold a thread of a former member
	called   int           // the preempter that has called, by number; -1: none
	rest     int64         // no preempter may call before that moment
	failed   error
	cpuOf    time.Duration // CPU time of earlier OS threads
}

// Run samples until ctx is done. If CPUs cannot be visited, it returns ErrNoVisits at once. Run is called once.
func (g *Group) Run(ctx context.Context) error {
	r := &groupRun{Group: g, ctx: ctx, members: map[int]*Member{},
		rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	defer r.endAll()
	r.visits, _ = newVisits(unix.Getpid(), &sampler.Config{Interval: g.Interval()})
	defer r.visits.closeNotes()
	if !r.visits.knowsAll() || !r.visits.comesTo(cpuset.Online()) {
		r.failed = ErrNoVisits
		return r.failed
	}
	r.lead = ptrace.NewTracer(unix.Getpid(), cpus.Here())
	r.lead.StackLimit = g.MaxStack
	defer r.lead.Close()
	for again := true; again; again = r.await() {
		ptrace.OnOwnThread(r.shift)
	}
	return r.failed
}

// knowsAll reports whether the kernel notes the switches of all CPUs.
func (v *visits) knowsAll() bool {
	if v == nil || len(v.cpus) == 0 {
		return false
	}
	for i := range v.cpus {
		if v.cpus[i].notes == nil {
			return false
		}
	}
	return true
}

func (r *groupRun) endAll() {
	for _, m := range r.End(r.failed) {
		m.result <- r.WhyEnded()
	}
	for pid := range r.members {
		r.endMember(pid, r.failed)
	}
}

// shift makes visits on one OS thread. The OS thread ends when goprof is about to be suspended, or no member is left.
func (r *groupRun) shift() {
	r.lead.ChangeOSThread()
	ptrace.LeaveInPeace()
	began := sampler.ThreadCPU()
	defer func() { r.cpuOf += sampler.ThreadCPU() - began }()
	defer r.endVisits()
	if !r.visits.begin() || !r.lead.Prepare() {
		r.failed = ErrNoVisits
		return
	}
	r.lead.ServedBy(r.visits.preempters)
	for _, m := range r.members {
		m.run.Tracer.ChangeOSThread()
	}
	r.want()
	r.renew, r.rest = false, 0
	for {
		if len(r.members) == 0 {
			if r.takeIn(); len(r.members) == 0 {
				break
			}
		}
		r.visits.tell(ptrace.Monotonic(), int64(r.Interval()))
		if !r.sleep() {
			break
		}
		before := sampler.ThreadCPU()
		if r.called >= 0 && !r.wasAway(ptrace.Monotonic()) {
			r.visit(r.called)
		}
		r.visits.preempters.Busy()
		r.refreshMembers()
		r.sendAway() // first: a process that leaves may join again
		r.takeIn()
		r.collect()
		if r.pending == 0 || r.stock.Low() { // a stop may be pending for long
			r.stock.Fill()
		}
		used := sampler.ThreadCPU()
		r.Counts.CPU.Store(int64(r.cpuOf+used-began) + r.visits.cpu)
		now := ptrace.Monotonic()
		r.rest = r.visits.rest(now, int64(used-before))
		if !r.visits.follow(now) || !r.visits.knowsAll() {
			r.failed = ErrNoVisits
		}
		if r.failed != nil {
			break
		}
	}
	r.endVisits() // no preempter calls while the group waits for late stops
	for _, m := range r.members {
		r.with(m, func(c *run) { c.Tracer.CollectRest(c.Late) })
	}
}

func (r *groupRun) endVisits() {
	r.lead.ServedBy(nil)
	r.visits.end()
}

// countVisits counts the visits that were made. The intervals of missed visits lack samples of every member.
func (r *groupRun) countVisits() {
	v := r.visits
	_, missed := v.settle(int64(r.Interval()))
	r.Counts.Missed.Store(v.left)
	r.Counts.Visits.Store(v.all)
	r.Counts.Met.Store(v.meets)
	r.Counts.Others.Store(max(v.meeting-v.meets, 0))
	if v.all > blindAfter && v.meeting == 0 && ring.KnowsPIDs() { // in a namespace, threads outside of it have no numbers
		r.failed = ErrNoVisits
	}
	for _, m := range r.members {
		m.run.Stats.Skipped += missed
	}
}

// want sets the processes for whose threads a preempter calls the sampling thread.
func (r *groupRun) want() {
	r.visits.preempters.Want(slices.Collect(maps.Keys(r.members))...)
}

// with lets a member use the Runner.
func (r *groupRun) with(m *Member, do func(c *run)) {
	m.run.Tracer.Borrow(r.lead)
	do(m.run)
	m.run.Tracer.GiveBack(r.lead)
}

// await waits while the group has no member. Meanwhile goprof visits no CPU, the kernel notes no switches, and no OS
// thread of goprof has a priority. await returns false when the group is over.
func (r *groupRun) await() bool {
	if r.ctx.Err() != nil || r.failed != nil {
		return false
	}
	if len(r.members) > 0 {
		return true
	}
	r.lastLoop, r.visits.moments.step = 0, 0 // the plan starts again
	return r.Await(r.ctx)
}

// sleep waits until a preempter calls, or for some time. It returns false when the shift is over.
func (r *groupRun) sleep() bool {
	deadline := ptrace.Monotonic() + napFor(int64(r.Interval()))
	for r.called = -1; ; {
		if r.ctx.Err() != nil || r.failed != nil || r.renew || ptrace.SuspendWanted() {
			return false
		}
		now := ptrace.Monotonic()
		if now >= deadline {
			return true
		}
		until := deadline
		if r.pending > 0 {
			until = min(until, now+int64(r.patience))
		}
		if now < r.rest {
			r.ts = unix.NsecToTimespec(min(until, r.rest))
			ptrace.SleepUntil(&r.ts)
		} else {
			r.visits.preempters.Hasten(r.pending > 0)
			r.called = r.visits.preempters.Await(until)
		}
		if r.called >= 0 && r.pending > 0 {
			r.lead.BoundTo(ptrace.CurrentCPU())
		}
		r.collect()
		if r.called >= 0 {
			return true // return at once, because a thread is held
		}
	}
}

// wasAway reports whether goprof could not look for a while. The CPU time that was used meanwhile must not go to any
// sample.
func (r *groupRun) wasAway(now int64) bool {
	return r.lastLoop != 0 && now-r.lastLoop > threads.LongGap+int64(r.Interval())
}

// visit samples the thread that a preempter took its CPU from, if that thread is a member's.
func (r *groupRun) visit(called int) {
	v := r.visits
	v.come(called, r.lead)
	pid, tid, _ := v.noted()
	m := r.members[pid]
	if tid == 0 || m == nil {
		return
	}
	arrived := v.visit.Arrived
	v.meets++
	v.cpus[v.at].metAt = arrived
	m.Meet()
	m.busy = true
	if r.pending > 0 {
		r.lead.GoOnAt(-1) // threads of other members may stop at any moment: goprof must not lose its CPU then
	}
	if share := m.Share(); m.leaving == 0 && (share >= 1 || r.rng.Float64() < share) {
		r.with(m, func(c *run) { r.look(c, tid, arrived) })
		r.lookAfter(m)
	}
}

// lookAfter notes that a member may have stops that are late.
func (r *groupRun) lookAfter(m *Member) {
	if n := m.run.Tracer.Pending(); n > 0 {
		r.pending += n
		r.patience = min(r.patience, m.run.Tracer.Patience())
	}
}

// look takes the sample of a member's thread.
func (r *groupRun) look(c *run, tid int, arrived int64) {
	v := r.visits
	c.scan.Now = arrived
	th := c.scan.Find(tid)
	if th == nil {
		return
	}
	c.hints.Take(c.scan.SetHint, false)
	th.CPU = int16(v.cpus[v.at].number)
	if !th.Hint.Skip {
		c.lookHeld(v, th, arrived, v.visit.Stands)
	}
}

// refreshMembers brings a member's threads and accounts up to date, one member at a time.
func (r *groupRun) refreshMembers() {
	now := ptrace.Monotonic()
	away := r.wasAway(now)
	r.lastLoop = now
	answer := now-r.answered > answerEvery
	if answer {
		r.answered = now
		r.countVisits()
	}
	for _, m := range r.members {
		if answer {
			m.Answer(m.run.Sum)
		}
		every := sampler.RefreshIdle
		if m.busy {
			every = sampler.RefreshBusy
		}
		if away || now-m.kept >= every {
			r.refresh(m, now, away)
		}
	}
}

// refresh brings one member up to date: its interval, its account, its threads. away: goprof was stopped meanwhile.
func (r *groupRun) refresh(m *Member, now int64, away bool) {
	c := m.run
	if !away { // otherwise the CPU time of the gap is forgiven
		c.scan.Watched(now)
	}
	c.Ticks.Interval = r.Interval()
	c.scan.Interval = int64(c.Ticks.Interval)
	c.Stats.Reached = m.Share() * float64(time.Second) / float64(c.Ticks.Interval)
	c.scan.Begin()
	c.takeHints()
	if m.busy {
		c.scan.Update()
	}
	m.kept, m.busy = now, false
	if c.Proc.Ended() {
		c.Stats.Ended = true
	}
}

// takeIn makes members of the waiting processes. If an earlier member for the same process is about to leave, the new
// one keeps waiting. If the process is a member and stays, the new one gets an error.
func (r *groupRun) takeIn() {
	var again []*Member
	coming := r.Next()
	for _, m := range coming {
		if old := r.members[m.PID]; old != nil && old.leaving != 0 {
			again = append(again, m) // its place will be free soon
			continue
		} else if old != nil {
			m.result <- sampler.ErrTwice
			continue
		}
		m.run.Tracer.ChangeOSThread()
		r.members[m.PID] = m
		r.refresh(m, ptrace.Monotonic(), false)
	}
	if len(coming) > 0 {
		r.want()
	}
	r.Counts.Members.Store(int64(len(r.members)))
	r.PutBack(again)
}

// sendAway removes members that are to leave. It waits for their late stops.
func (r *groupRun) sendAway() {
	now := int64(0)
	before := len(r.members)
	for pid, m := range r.members {
		c := m.run
		select {
		case <-c.Cancel:
			c.Cancelled = true
		default:
		}
		if !c.Over() {
			continue
		}
		if now == 0 {
			now = ptrace.Monotonic()
		}
		if m.leaving == 0 {
			m.leaving = now
		}
		if c.Tracer.Pending() > 0 {
			if now-m.leaving < leaveWithin {
				continue
			}
			r.renew = true // when this OS thread ends, the kernel releases threads that stop later
			r.with(m, func(c *run) { c.Tracer.Abandon(c.Late) })
		}
		r.endMember(pid, c.Failed)
	}
	if len(r.members) < before {
		r.want()
	}
}

func (r *groupRun) endMember(pid int, why error) {
	m := r.members[pid]
	delete(r.members, pid)
	r.Counts.Members.Store(int64(len(r.members)))
	m.run.scan.ReadAllCharges()
	m.run.Stats = m.run.total()
	m.result <- why
}

func (r *groupRun) collect() {
	if r.pending == 0 {
		return
	}
	r.pending, r.patience = 0, time.Hour
	for _, m := range r.members {
		if m.run.Tracer.Pending() > 0 {
			r.with(m, (*run).collectLate)
			r.lookAfter(m)
		}
	}
}

func (r *run) collectLate() { r.Collect() }
