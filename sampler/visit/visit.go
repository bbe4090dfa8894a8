//go:build linux

package visit

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/cpuset"
	"goprof/sampler/ptrace"
	"goprof/sampler/threads"
)

// Meeting threads on their CPUs.
//
// In each interval a preempter wakes up once, on average, on each CPU on which the program may run
// (ptrace/preempter.go). The moment depends neither on the program nor on the visit before (plan.go). With its
// real-time priority the preempter takes the CPU from the thread that runs there. If that thread belongs to the
// program, it is the sample, and the preempter calls the sampling thread. So
//
//	samples = CPU time / interval
//
// This is true from a thread's first instruction on, even if the thread runs only in short bursts or lives briefly. The
// sampled thread is held where it was when the preempter took the CPU (ptrace/held.go).
//
// If the kernel does not note the thread, goprof searches for it (threads/search.go).
//
// Some kernels do not preempt a thread inside a system call. Then the preempter gets the CPU at the end of the call, or
// when the thread goes to sleep in it. In both cases the thread was on the CPU when the preempter woke up, so it is the
// sample. If the thread sleeps, goprof looks at it without a stop (ptrace/unstopped.go).

const (
	// visitHot is how long a thread stays hot if CPUs are visited.
	visitHot = int64(30 * time.Millisecond)
	// keepEvery is how often the list of threads is updated if visits need not ask threads.
	keepEvery = int64(10 * time.Millisecond)
	// bookEvery is how often the CPU time of all threads that have run is read if visits need not ask threads.
	bookEvery = int64(100 * time.Millisecond)
	// listNoted is Upkeep.Relist if the kernel notes threads. It is long, because a thread that is not listed yet is
	// found when a visit meets it.
	listNoted = int64(time.Second)
	// restLater is how long visits may take before the sampling thread must sleep for as long.
	restLater = int64(time.Millisecond)
)

// visits says which CPU has its turn, and what visits cost.
type visits struct {
	plan
	of         int // a thread that may run on all CPUs to visit
	cpus       []visited
	preempters *ptrace.Preempters // the preempters of this OS thread; nil: there are none
	at         int                // the number of the visited CPU and its preempter
	visit      ptrace.Visit       // the present visit
	process    int                // the process of the met thread, by the kernel's notes; 0: not known
	meets      int64              // visits that met a thread of the process (Group)
	metFor     int64              // how many visits the ones that met a thread stand for (Engine)
	tid        int                // the sampling thread's
	// restless is twice the time that visits took, less the time that has passed, as of restAt.
	restless, restAt int64
	keptAt           int64 // when refresh was last called
	bookedAt         int64 // when all threads were last read, if no visit reads them
	began            int64
	asked            cpuset.Asked
	noNotes          bool
}

type visited struct {
	number int
	metAt  int64
	notes  *switchNotes // nil if not permitted
	gone   bool         // the program could not run there when goprof last asked
}

// knows reports whether the kernel notes the thread that lost the CPU.
func (v *visits) knows() bool { return v.at >= 0 && v.cpus[v.at].notes != nil }

// newVisits prepares to visit the CPUs on which the threads of the process may run. It returns nil and a reason if that
// cannot be done. The main reasons are these. Without real-time priority, the running thread would choose the moment of
// the visit. Or goprof may not use all of these CPUs. Or the kernel does not report from which thread the CPU was
// taken.
func newVisits(pid int, cfg *sampler.Config) (*visits, sampler.NoVisits) {
	var ours, theirs unix.CPUSet
	if isTraced() {
		return nil, sampler.VisitorTraced
	}
	if unix.SchedGetaffinity(0, &ours) != nil || unix.SchedGetaffinity(pid, &theirs) != nil {
		return nil, sampler.OtherCPUs
	}
	v := &visits{of: pid, at: -1, noNotes: cfg.NoNotes, plan: newPlan(cfg.NoJitter)}
	v.asked = cpuset.AskedNow()
	for cpu := range len(theirs) * 64 {
		switch {
		case !theirs.IsSet(cpu):
		case !ours.IsSet(cpu):
			return nil, sampler.OtherCPUs
		default:
			v.cpus = append(v.cpus, visited{number: cpu})
		}
	}
	if len(v.cpus) < 2 {
		return nil, sampler.OneCPU // with one CPU, the sampling thread has no real-time priority
	}
	if !cfg.NoNotes {
		v.openNotes()
	}
	return v, 0
}

// isTraced reports whether goprof itself is traced (strace). Each of its system calls then stops, and visits come too
// late.
func isTraced() bool {
	b, err := procfs.Read("/proc/self/status", procfs.MaxFile)
	return err == nil && procfs.StatusTracer(b) != 0
}

// openNotes asks for the notes of all CPUs. Opening the first event of a machine waits for all CPUs
// (kernel/events/core.c, account_event). This takes long if they are busy, so openNotes is called before anything else.
func (v *visits) openNotes() {
	for i := range v.cpus {
		v.cpus[i].notes = openSwitches(v.cpus[i].number)
	}
}

func (v *visits) closeNotes() {
	if v == nil {
		return
	}
	for i := range v.cpus {
		v.cpus[i].notes.close()
		v.cpus[i].notes = nil
	}
}

// beginVisits is called on each new OS thread, and reports whether CPUs are visited from it.
func (r *run) beginVisits() bool {
	switch {
	case r.visits == nil: // newVisits or stopVisiting has reported why
	case !r.scan.HasStats():
		r.Stats.NoVisits = sampler.NoSchedstat
	case !r.visits.begin():
		r.Stats.NoVisits = sampler.NoPreempters
	default:
		return true
	}
	return false
}

// begin is called on each new OS thread, and reports whether visits can be made from it.
func (v *visits) begin() bool {
	v.end()
	v.meetAgain(ptrace.Monotonic())
	var err error
	if v.preempters, err = ptrace.NewPreempters(); err != nil {
		return false
	}
	for i := range v.cpus {
		cpu := &v.cpus[i]
		if cpu.gone {
			v.preempters.SkipNumber()
			continue
		}
		if v.preempters.Send(cpu.number, cpu.notes.shared()) != nil {
			v.end()
			return false
		}
		cpu.notes.watch(true)
	}
	v.tid, v.at = unix.Gettid(), -1
	v.startPlan()
	if v.began == 0 {
		v.began = ptrace.Monotonic()
	}
	return true
}

// end recalls the preempters: there is no visit for some time.
func (v *visits) end() {
	if v.preempters == nil {
		return
	}
	for i := range v.cpus {
		v.cpus[i].notes.watch(false)
	}
	v.takeCounts()
	v.preempters.End()
	v.preempters, v.at = nil, -1
}

// come begins the visit for which the preempter with this number has called the sampling thread.
func (v *visits) come(number int, t *ptrace.Tracer) {
	v.at, v.visit = number, v.preempters.Visit(number)
	t.BoundTo(v.cpus[number].number)
	t.GoOnAt(v.idleBeside(number))
}

// idleBeside returns the number of another CPU that was idle at its last visit, -1 if there is none.
func (v *visits) idleBeside(which int) int {
	for i := range v.cpus {
		if i != which && !v.cpus[i].gone && v.preempters.IsIdle(i) {
			return i
		}
	}
	return -1
}

// rest returns the moment before which there is no visit. spent is the time that the last visit took. With these rests
// the sampling thread uses at most half of a CPU. Visits may still come close together now and then (moments.go). The
// preempters' own CPU time does not count: preempters also wake up during a rest, so with many CPUs such a rest would
// never end.
func (v *visits) rest(now, spent int64) int64 {
	v.restless = max(v.restless-(now-v.restAt), 0) + 2*spent
	v.restAt = now
	until := now + max(v.restless-restLater, 0)
	v.preempters.Rest(until)
	return until
}

// visitNext makes a visit if a preempter has called, and calls refresh now and then.
func (r *run) visitNext() {
	v := r.visits
	now := ptrace.Monotonic()
	away := r.scan.WasAway(now)
	if r.Called >= 0 && !away {
		r.visit(r.Called)
	}
	if r.spare == nil { // now, not while a thread is held
		r.spare = r.Queue.Take()
	}
	v.preempters.Busy()
	if away || !v.knows() || now-v.keptAt >= max(keepEvery, int64(r.Ticks.Interval)) {
		v.keptAt = now
		r.refresh()
	}
	r.Collect()
}

func (r *run) refresh() {
	v := r.visits
	r.Stats.Gap = max(r.Stats.Gap, time.Duration(r.scan.Begin()))
	r.takeHints()
	if !v.follow(r.scan.Now) {
		r.stopVisiting(sampler.OtherCPUs)
		return
	}
	if v.knows() && r.scan.Now-v.bookedAt > bookEvery {
		v.bookedAt = r.scan.Now
		r.scan.Update()
	}
	expected := (r.scan.Bills.Now - r.scan.Bills.Base - r.scan.Bills.Excused) / int64(r.Ticks.Interval)
	if v.meetsNobody(expected, r.scan.Now) {
		r.stopVisiting(sampler.MetNobody)
	}
}

// meetsNobody reports whether visits met far fewer threads than the program's CPU time makes likely. If 50 meetings are
// expected, 6 or fewer happen by chance once in 10^14 times. If many CPUs share one visit, chance is larger, so more
// meetings must be expected.
func (v *visits) meetsNobody(expected, now int64) bool {
	few := fewMeets * int64(max(len(v.strange), 1))
	return expected > few && v.metFor < expected/8 && now-v.began > provesWithin
}

// fewMeets is how many meetings must be expected before a lack of them is a sign.
const fewMeets = 50

// provesWithin is how long visits may meet no thread. On a busy machine the first visits of goprof come late.
const provesWithin = int64(2 * time.Second)

// stopVisiting gives up visits. From then on goprof looks for due threads (threads/scan.go). Visits meet no thread if
// goprof itself is traced (strace), or if the kernel updates CPU times at other moments.
func (r *run) stopVisiting(why sampler.NoVisits) {
	r.Stats.NoVisits = why
	var all unix.CPUSet
	for _, c := range r.visits.cpus {
		all.Set(c.number)
	}
	r.endVisits()
	unix.SchedSetaffinity(0, &all)
	r.visits.closeNotes()
	r.visits = nil
	r.notVisiting()
	r.beginTicks()
}

func (r *run) endVisits() {
	if r.visits != nil {
		r.Preempters = nil
		r.Tracer.ServedBy(nil)
		r.visits.end()
	}
}

func (r *run) countVisits() {
	if r.visits != nil {
		held, missed := r.visits.settle(int64(r.Ticks.Interval))
		r.Stats.Ticks += held
		r.Stats.Skipped += missed
	}
}

// notVisiting sets what is different without visits.
func (r *run) notVisiting() {
	r.scan.GivePoolUp()
	r.visiting = false
	r.scan.Keep(threads.Upkeep{HotFor: threads.HotFor, Relist: threads.ListEvery})
	r.Tracer.BoundTo(-1)
}

func (r *run) beginTicks() { r.Ticks.Begin(ptrace.Monotonic(), r.Ticks.Interval) }

// visit samples the thread that a preempter took its CPU from. If goprof is stopped meanwhile, wasAway notices that
// when the look is accounted for.
func (r *run) visit(called int) {
	v := r.visits
	v.come(called, r.Tracer)
	th, searched := r.whoWas(v.visit.Arrived)
	if th == nil {
		return
	}
	v.cpus[v.at].metAt = v.visit.Arrived
	count := v.randomRounding(float64(v.visit.Stands) * searched)
	v.metFor += count
	th.CPU = int16(v.cpus[v.at].number)
	if th.Hint.Skip {
		r.scan.BringUpToDate(th)
		return
	}
	r.lookHeld(v, th, v.visit.Arrived, count)
}

// randomRounding returns x rounded up or down at random, so that the mean is x.
func (v *visits) randomRounding(x float64) int64 {
	n := int64(x)
	if v.rng.Float64() < x-float64(n) {
		n++
	}
	return n
}

// wasPreempted reports whether, by the kernel's notes, the thread that lost its CPU does not sleep.
func (v *visits) wasPreempted(tid int) bool { return v.cpus[v.at].notes.preempted(v.visit.Head, tid) }

// lookHeld samples a thread that lost its CPU to a preempter. A preempted thread does not sleep, so lookHeld does not
// read its state: that would take a tenth of the thread's pause.
func (r *run) lookHeld(v *visits, th *threads.Thread, arrived, count int64) {
	if count == 0 || r.Tracer.CountAgain(th.TID, count) {
		return
	}
	snap := r.takeSpare()
	if snap == nil {
		r.Stats.Attempted += count
		r.Stats.Lost[ptrace.QueueFull] += count
		return
	}
	snap.Count = count
	o := ptrace.Running
	if !v.wasPreempted(th.TID) && r.scan.Sleeps(th) {
		o = r.Tracer.LookUnstopped(th.TID, th.Hint, snap)
	}
	if o == ptrace.Running || o == ptrace.Moved {
		snap.Waiting.Reset()
		o = r.Tracer.LookHeld(ptrace.Met{TID: th.TID, Arrived: arrived, Owned: v.process == r.scan.Proc.PID}, th.Hint, snap)
	}
	if o != ptrace.Pending {
		r.account(snap, o)
	}
}

// whoWas returns the thread that the preempter took the CPU from, and the number of visits for which its search stands.
func (r *run) whoWas(now int64) (*threads.Thread, float64) {
	v := r.visits
	r.scan.Now = now
	if _, tid, noted := v.noted(); noted {
		return r.scan.Find(tid), 1
	}
	if when, ok := procfs.ExecStart(v.visit.Account); ok && ptrace.CurrentCPU() == v.cpus[v.at].number {
		return r.scan.WasCharged(when, v.cpus[v.at].number)
	}
	return nil, 0
}

// noted returns the thread from which the preempter took the CPU, and its process, if the kernel has noted them. 0:
// there is none. noted is false without the kernel's notes. If another thread had the CPU between the preempter and the
// sampling thread, the visit is repeated. This happens if the sampling thread was not asleep, and moving it to this CPU
// took too long.
func (v *visits) noted() (process, tid int, noted bool) {
	notes := v.cpus[v.at].notes
	if v.process = 0; notes == nil {
		return 0, 0, false
	}
	process, tid, ok := notes.before(v.visit.Head, v.visit.TID, v.tid)
	if !ok {
		v.preempters.Again(v.at)
		v.held--
		v.all--
		v.meeting--
	}
	v.process = process
	return process, tid, true
}
