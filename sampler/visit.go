//go:build linux

package sampler

import (
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/ptrace"
)

// How goprof meets threads on their CPUs.
//
// In each interval we wake up once, on the average, on each CPU on which the program may run. Neither the program nor
// the visit before has chosen that moment (moments.go). With real-time priority we take the CPU from the thread that
// runs there. If that is a thread of the program, it is a sample. So
//
//	samples = CPU time / interval
//
// from a thread's first instruction on, however short its bursts and its life are: no thread has to earn credit first,
// and no thread that waits for a CPU is looked at in vain. The thread stands where our coming has found it
// (ptrace/held.go).
//
// visit_search.go finds the thread that we took the CPU from.
//
// A kernel that is not preempted inside of system calls gives us the CPU at the end of the call, or where the thread
// goes to sleep in it. The thread is found in either case: it was on the CPU when we asked for the CPU. A thread that
// sleeps is not stopped but looked at as it is (ptrace/unstopped.go).

const (
	// visitHot is how long a thread is hot where CPUs are visited.
	visitHot = int64(30 * time.Millisecond)
	// stopWithin is how long one visit waits for its thread to stop. Where other threads wait for that CPU, too, they
	// may go first.
	stopWithin = int64(100 * time.Microsecond)
	// stopSurely is how long a visit waits where threads have stopped in time lately; see arm.
	stopSurely = int64(4 * time.Millisecond)
	// lateVisit is how long a visit takes, with all that follows, where its thread did not stop in time.
	lateVisit = 4 * stopWithin
	// visitsMost: where there are more CPUs, those on which nobody was met lately share one visit in each interval.
	visitsMost = 8
	// bookEvery is how often all threads that have run are asked what they used, where a visit needs to ask none.
	bookEvery = int64(100 * time.Millisecond)
	// settleTime is the least time between our coming to a CPU and the visit. settleHere is the least time between two
	// visits to the same CPU.
	settleTime = int64(100 * time.Microsecond)
	settleHere = int64(15 * time.Microsecond)
	// restLater is how much time visits may take before we must have slept for as long.
	restLater = int64(time.Millisecond)
	// takenFor: a CPU counts as idle until so many visits in a row have met somebody there.
	takenFor = 3
	// metLately is how long a CPU is known as one on which the program runs.
	metLately = int64(time.Second)
)

// visits says which CPU has its turn, and what visits cost.
type visits struct {
	rng     *rand.Rand
	moments moments
	cpus    []visited
	at      int          // index of the CPU that is visited
	watched int          // index of the CPU with its notes on, -1: none
	round   []int        // the CPUs from which the next is drawn
	turn    int          // visits since round was made
	met     bool         // the last visit met somebody
	meets   int64        // how many visits met somebody
	strange []int        // the CPUs on which nobody was met lately; one of them has a turn
	bound   ptrace.Alarm // of a visit
	boundAt int64        // when bound rings
	visitAt int64        // the moment of the last visit
	lateAt  int64        // when a visit took long last
	own     int          // descriptor of our OS thread's sched
	tid     int          // of our OS thread
	chance  float64      // chance that a visit searches threads that are not hot
	cost    float64      // ns of such a search, averaged
	between float64      // ns between two visits, averaged
	last    int64
	missed  int64 // missed visits, fewer than a whole interval has
	left    int64 // missed visits in all
	// restless is, as of restAt, twice the time that visits took, less the time that has passed since.
	restless, restAt int64
	// bookedAt is when all threads were asked last, where no visit asks them.
	bookedAt int64
	began    int64
	// followedAt is when goprof last asked which CPUs there are.
	followedAt int64
	noNotes    bool
	buf        [8192]byte
}

// visited is one CPU.
type visited struct {
	number int
	metAt  int64
	notes  *switchNotes // nil where they are not permitted
	taken  int          // how many visits in a row have found somebody there, up to takenFor
	gone   bool         // when goprof last asked, the program could not run there
}

// knows reports whether the kernel tells which thread we took a CPU from.
func (v *visits) knows() bool { return v.at >= 0 && v.cpus[v.at].notes != nil }

// newVisits prepares to visit the CPUs on which the threads of the process may run. It returns nil where that cannot be
// done. Without real-time priority the running thread chooses the moment at which we come. Or we may not go everywhere.
// Or the kernel does not tell which thread we took the CPU from.
func newVisits(pid int, cfg *Config) *visits {
	var ours, theirs unix.CPUSet
	if isTraced() {
		return nil
	}
	if unix.SchedGetaffinity(0, &ours) != nil || unix.SchedGetaffinity(pid, &theirs) != nil {
		return nil
	}
	v := &visits{rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), own: -1, at: -1, watched: -1, chance: 1,
		noNotes: cfg.NoNotes}
	v.moments = moments{rng: v.rng, exact: cfg.NoJitter}
	for cpu := range len(theirs) * 64 {
		switch {
		case !theirs.IsSet(cpu):
		case !ours.IsSet(cpu):
			return nil
		default:
			v.cpus = append(v.cpus, visited{number: cpu, taken: takenFor})
		}
	}
	if len(v.cpus) < 2 {
		return nil // on the only CPU we have no real-time priority
	}
	if !cfg.NoNotes {
		v.openNotes()
	}
	return v
}

// isTraced reports whether goprof is traced itself (strace): each of its system calls stops, and nothing comes in time.
func isTraced() bool {
	b, err := procfs.Read("/proc/self/status", procfs.MaxFile)
	return err == nil && procfs.StatusTracer(b) != 0
}

// openNotes asks for the notes of all CPUs. The first event of a machine waits until all CPUs have taken notice
// (kernel/events/core.c, account_event). That takes long where they are busy, so openNotes is called before anything
// else.
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

// begin is called on each new OS thread, and tells whether visits can be made from it.
func (v *visits) begin() bool {
	v.end()
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_FIFO {
		return false
	}
	v.own, err = unix.Open("/proc/thread-self/sched", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		v.own = -1
		return false
	}
	v.bound, v.boundAt, v.tid = ptrace.NewAlarm(), 0, unix.Gettid()
	_, ok := procfs.ExecStart(v.ownSched())
	v.at = -1
	if v.began == 0 {
		var ts unix.Timespec
		v.began = ptrace.Monotonic(&ts)
	}
	if ok && v.bound.Works {
		return true
	}
	v.end()
	return false
}

func (v *visits) end() {
	v.leave()
	v.bound.Close()
	if v.own >= 0 {
		unix.Close(v.own)
		v.own = -1
	}
}

// leave ends the notes of the CPU where we are: there is no visit for some time.
func (v *visits) leave() {
	v.watch(-1)
	v.at = -1
}

// watch has the kernel note the switches of that CPU (-1: of none) and of no other.
func (v *visits) watch(which int) {
	if which == v.watched {
		return
	}
	if v.watched >= 0 {
		v.cpus[v.watched].notes.watch(false)
	}
	if v.watched = which; which >= 0 {
		v.cpus[which].notes.watch(true)
	}
}

func (v *visits) ownSched() []byte {
	n, err := unix.Pread(v.own, v.buf[:], 0)
	if err != nil {
		return nil
	}
	return v.buf[:n]
}

// goTo moves this OS thread to a CPU, and returns on that CPU. The OS thread may have been brought elsewhere since the
// last visit (ptrace/aside.go).
func (v *visits) goTo(which int) bool {
	cpu := &v.cpus[which]
	if which != v.watched {
		v.watch(-1)
	}
	if !v.isAt(which) {
		var m unix.CPUSet
		m.Set(cpu.number)
		if unix.SchedSetaffinity(0, &m) != nil {
			v.at = -1 // the CPU was switched off, or is not allowed any more
			return false
		}
	}
	v.at = which
	v.watch(which)
	return true
}

// isAt reports whether we are on a CPU, and bound to it.
func (v *visits) isAt(which int) bool {
	return which == v.at && ptrace.CurrentCPU() == v.cpus[which].number
}

// found notes whether anybody was on a CPU.
func (c *visited) found(anybody bool) {
	if !anybody {
		c.taken = 0
	} else if c.taken < takenFor {
		c.taken++
	}
}

// idleBeside is the number of another CPU that nobody needs, as far as the last visits tell; -1 is none.
func (v *visits) idleBeside(which int) int {
	for i := range v.cpus {
		if c := &v.cpus[i]; i != which && c.taken < takenFor && !c.gone {
			return c.number
		}
	}
	return -1
}

// next draws which CPU to visit next. Where many CPUs have met nobody lately, one of them has a turn in a round.
//
// The CPU is drawn anew each time. The scheduler moves threads away from the CPU where we are at work. So if we went
// round, we would meet a thread that runs all the time twice, or never.
func (v *visits) next(now int64) (which int) {
	if v.turn++; v.turn >= len(v.round) {
		v.newRound(now)
	}
	return v.round[v.rng.IntN(len(v.round))]
}

func (v *visits) newRound(now int64) {
	v.turn, v.round, v.strange = 0, v.round[:0], v.strange[:0]
	for i, c := range v.cpus {
		if len(v.cpus) <= visitsMost || c.metAt != 0 && now-c.metAt < metLately {
			v.round = append(v.round, i)
		} else {
			v.strange = append(v.strange, i)
		}
	}
	if len(v.strange) > 0 {
		v.round = append(v.round, v.strange[v.rng.IntN(len(v.strange))])
	}
}

// weight is how many visits the current one stands for: it stands also for the CPUs that have no turn in this round.
func (v *visits) weight() float64 {
	for _, i := range v.strange {
		if i == v.at {
			return float64(len(v.strange))
		}
	}
	return 1
}

// meanGap is the mean time between two visits.
func (v *visits) meanGap(interval int64) int64 { return interval / int64(max(len(v.round), 1)) }

// plan prepares the next visit, which t makes. It returns the moment of the visit.
//
// We first go to the CPU and then sleep there, until a timer of that CPU wakes us up: the timer takes the CPU away at
// that very moment. Coming from another CPU would take an interrupt between the two CPUs. Until the interrupt comes the
// thread runs on, but gives up the CPU at the end of each system call. So it would be met there too often. And a
// visitor that goes from CPU to CPU meets threads that wait for the threads that it has just held up.
func (v *visits) plan(now, from, interval int64, t *ptrace.Tracer) (at int64) {
	which := v.next(now)
	if step := v.meanGap(interval); step != v.moments.step {
		v.moments.begin(now, step)
	}
	settle := settleTime
	if v.isAt(which) {
		settle = settleHere
	}
	at = max(v.moments.at(), from, now+settle)
	// All that can be done before we come there is done now: later somebody may have to wait for that CPU.
	t.GoOnAt(v.idleBeside(which))
	t.BoundTo(v.cpus[which].number)
	v.arm(now, at)
	if v.goTo(which) {
		v.cpus[which].notes.mark()
	} else {
		t.BoundTo(-1)
	}
	return at
}

// arm bounds how long the visit at that moment waits for its thread to stop. To set a timer anew takes some ten
// microseconds in a virtual machine, and somebody waits for this CPU meanwhile. So where threads have stopped in time
// for a while, the timer is set for later, and serves all visits until then.
func (v *visits) arm(now, at int64) {
	if v.visitAt != 0 && now-v.visitAt > lateVisit {
		v.lateAt = now
	}
	v.visitAt = at
	soonest := at + 2*stopWithin
	latest := soonest
	if v.lateAt == 0 || now-v.lateAt > metLately {
		latest = at + stopSurely
	}
	if v.boundAt < soonest || v.boundAt > latest {
		v.boundAt = latest
		v.bound.Set(latest)
	}
}

// nextMoment goes on to the next visit, after a visit that took the time spent.
func (r *run) nextMoment(spent int64) {
	r.stats.Skipped += r.visits.advance(ptrace.Monotonic(&r.ts), spent, int64(r.ticks.interval))
}

// advance goes on to the next visit, after a visit that took the time spent. It returns how many intervals the visits
// make up that were missed.
func (v *visits) advance(now, spent, interval int64) (skipped int64) {
	v.moments.leaveOut(spent, int64(len(v.round)))
	missed := v.moments.advance(now)
	v.left += missed
	v.missed += missed
	each := max(interval/v.moments.step, 1)
	skipped = v.missed / each
	v.missed %= each
	return skipped
}

// rest returns the moment before which there is no visit, after a visit that took the time spent: never more than half
// of a CPU is ours. rest lets visits come close together now and then (moments.go).
func (v *visits) rest(now, spent int64) int64 {
	v.restless = max(v.restless-(now-v.restAt), 0) + 2*spent
	v.restAt = now
	return now + max(v.restless-restLater, 0)
}

// visitNext is one tick.
func (r *run) visitNext() {
	now := ptrace.Monotonic(&r.ts)
	away := r.scan.lastTick != 0 && now-r.scan.lastTick > longGap+int64(r.ticks.interval)
	r.visits.met = false
	if r.slept && !away {
		r.visit(now)
	}
	if r.visits.turn == 0 || away {
		r.stats.Gap = max(r.stats.Gap, time.Duration(r.scan.begin()))
		r.takeHints()
		if !r.visits.follow(r.scan.now, r.scan.proc.PID) {
			r.stopVisiting()
			return
		}
		if v := r.visits; v.knows() && r.scan.now-v.bookedAt > bookEvery {
			v.bookedAt = r.scan.now
			r.scan.update()
		}
		expected := (r.scan.bills.now - r.scan.bills.base - r.scan.bills.excused) / int64(r.ticks.interval)
		if expected > fewMeets && r.visits.meets < expected/8 && r.scan.now-r.visits.began > provesWithin {
			r.stopVisiting()
		}
	}
	r.collect()
}

// fewMeets is how many threads should have been met before it counts that nearly none were.
const fewMeets = 50

// provesWithin is how long a visitor may meet nobody: on a machine where goprof itself has just begun, and others
// want the CPUs, the first visits come late.
const provesWithin = int64(2 * time.Second)

// stopVisiting gives up visits and goes on with scan.go. A goprof that is traced itself (strace), or runs on a kernel
// that dates charges differently, meets nobody, however much the program runs.
func (r *run) stopVisiting() {
	var all unix.CPUSet
	for _, c := range r.visits.cpus {
		all.Set(c.number)
	}
	unix.SchedSetaffinity(0, &all)
	r.visits.end()
	r.visits.closeNotes()
	r.visits = nil
	r.notVisiting()
	r.beginTicks()
}

// notVisiting sets what differs where threads are looked for.
func (r *run) notVisiting() {
	r.scan.givePoolUp()
	r.visiting, r.scan.hotFor, r.scan.pools = false, hotFor, false
	r.t.BoundTo(-1)
}

// beginTicks begins the ticks at which threads are looked for.
func (r *run) beginTicks() { r.ticks.begin(ptrace.Monotonic(&r.ts), r.ticks.interval) }

// visit samples the thread that we took this CPU from at the moment arrived. A goprof that is stopped after that moment
// finds out in the account of the look (wasAway).
func (r *run) visit(arrived int64) {
	v := r.visits
	if v.at < 0 || ptrace.CurrentCPU() != v.cpus[v.at].number {
		return
	}
	th, searched := r.whoWas(arrived)
	if th == nil {
		return
	}
	v.cpus[v.at].metAt, v.met = arrived, true
	v.meets++
	th.cpu = int16(v.cpus[v.at].number)
	if th.hint.Skip {
		return
	}
	r.lookHeld(v, th, arrived, v.randomRounding(v.weight()*searched))
}

// randomRounding is a whole number whose mean is x.
func (v *visits) randomRounding(x float64) int64 {
	n := int64(x)
	if v.rng.Float64() < x-float64(n) {
		n++
	}
	return n
}

// wasPreempted reports whether the kernel has noted that the thread we took the CPU from does not sleep.
func (v *visits) wasPreempted(tid int) bool { return v.cpus[v.at].notes.preempted(tid) }

// lookHeld takes the sample of a thread that we took the CPU from. A preempted thread does not sleep, so it is not
// asked: the question takes a tenth of the time for which the thread is held.
func (r *run) lookHeld(v *visits, th *thread, arrived, count int64) {
	if count == 0 || r.t.CountAgain(th.tid, count) {
		return
	}
	snap := r.q.take()
	if snap == nil {
		r.stats.Attempted += count
		r.stats.Lost[ptrace.QueueFull] += count
		return
	}
	snap.Count = count
	o := ptrace.Pending
	if !v.wasPreempted(th.tid) && r.scan.sleeps(th) {
		if o = r.t.LookUnstopped(th.tid, th.hint, snap); o == ptrace.Taken {
			r.stats.Asleep += count
		}
	} else {
		o = ptrace.Running
	}
	if o == ptrace.Running || o == ptrace.Moved {
		snap.Waiting.Reset()
		if r.t.WillStepAside(&th.hint, arrived) {
			v.watch(-1) // from another CPU this would take an interrupt
		}
		o = r.t.LookHeld(th.tid, arrived, th.hint, snap)
	}
	if o != ptrace.Pending {
		r.account(snap, o)
	}
}

// sleeps reports whether a thread has left the queue of its CPU to sleep: then the kernel tells a place where it waits
// (kernel/sched/core.c, get_wchan). A thread that was preempted while it was about to sleep is in state S, too, but
// still in the queue. To read the system call of such a thread would take milliseconds (wait_task_inactive).
func (s *scan) sleeps(th *thread) bool {
	if waits, told := procfs.InKernel(s.readFile(th, fdWchan)); told {
		return waits
	}
	return procfs.State(s.readFile(th, fdStat)) != 'R' // a kernel without the names of its functions
}
