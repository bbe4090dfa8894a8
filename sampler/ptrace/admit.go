//go:build linux

package ptrace

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// When a stop may begin. Only this OS thread can end the stop: ptrace binds a tracee to the OS thread that seized it.
// So a stop lasts until this OS thread has a CPU. With real-time priority this OS thread has a CPU at once, unless
// other threads with real-time priority have it. Without that priority, this OS thread waits in the queue of the CPU,
// or until its control group may run again (Documentation/scheduler/sched-bwc.rst). So the gate decides before each
// stop whether the stop can be expected to end in time.
//
// If the gate refuses, no CPU time is lost: the thread's time waits for the next look that succeeds.

// Hindrance is a reason why a stop might not end in time.
type Hindrance uint8

const (
	// NoHindrance: a stop ends in time.
	NoHindrance Hindrance = iota
	// NoPriority: the sampling thread has no real-time priority, and others want the CPUs.
	NoPriority
	// GroupLimit: goprof's control group has used up its CPU time, or soon will have.
	GroupLimit
	// OthersFirst: the sampling thread has real-time priority and had no CPU. Others with real-time priority had it, or
	// the kernel throttled real-time threads (kernel.sched_rt_runtime_us).
	OthersFirst
	// Stalled: this OS thread could run, by the kernel's account, but did not release the thread. The host of a virtual
	// machine may have given the CPU to others.
	Stalled

	NumHindrances = int(iota)
)

const (
	// longWait is a wait for a CPU, or a pause, after which no stop begins for a while: a tenth of the bound.
	longWait = int64(StandsAtMost / 10)
	// firstRest is how long no stop begins after a long wait. Each further long wait doubles that time, up to mostRest,
	// until there is none for calmFor.
	firstRest = int64(time.Second)
	mostRest  = int64(32 * time.Second)
	calmFor   = int64(time.Minute)
	// turnOfOthers is how long each thread of a CPU may run before the sampling thread: the kernel's usual slice
	// (kernel/sched/fair.c, sysctl_sched_base_slice: 2.8 ms on 8 CPUs and more). mostTurns of these turns
	// take a quarter of the bound.
	turnOfOthers = 3 * time.Millisecond
	mostTurns    = int(StandsAtMost / 4 / turnOfOthers)
	// runnableEvery is how often the gate reads how many threads want a CPU.
	runnableEvery = int64(10 * time.Millisecond)
	// trialNaps are sleeps before the first stop. They show how soon the sampling thread has a CPU again.
	trialNaps = 16
	trialNap  = int64(time.Millisecond)
)

// account is what the kernel reports about the sampling thread's chances to get a CPU. The zero account hinders
// nothing.
type account struct {
	urgent   bool   // the sampling thread has real-time priority
	waited   uint64 // how long this OS thread has waited for a CPU so far
	turns    uint64 // how often this OS thread was given a CPU
	runnable int    // threads that want a CPU, per CPU
	groups   []groupAccount
}

// groupAccount is the account of a control group with a limit.
type groupAccount struct {
	quota     time.Duration // the group's CPU time for each period
	period    uint64        // number of the period
	throttled uint64        // how often the group has had to wait for the next period
	used      time.Duration // CPU time of the group so far
}

// gate decides whether a stop may begin. It belongs to one OS thread.
type gate struct {
	sources sources
	tid     int // the OS thread's number
	last    account
	began   []time.Duration // for each group, an upper bound of what it had used when its period began
	askedAt int64           // when runnable was last read

	rest, until int64     // no stop before until
	calmAt      int64     // after this, the next rest is a short one
	why         Hindrance // the cause of the last long wait or pause

	longest int64 // longest pause since the last decision
}

// mayStop returns NoHindrance if a stop that begins now can be expected to end in time.
func (g *gate) mayStop(now int64) Hindrance {
	askRunnable := now-g.askedAt >= runnableEvery
	if askRunnable {
		g.askedAt = now
	}
	return g.decide(now, g.sources.read(g.last, askRunnable))
}

// decide decides whether a stop may begin, from the kernel's numbers now (a) and at the last call. After a long wait or
// pause it closes the gate for a while. It returns the reason if the stop may not begin.
func (g *gate) decide(now int64, a account) Hindrance {
	before, held := g.last, g.longest
	g.last, g.longest = a, 0
	if why := hinderedSince(&before, &a, held); why != NoHindrance {
		if g.why = why; why != Stalled { // a stall is over, and says nothing about the next stop
			g.close(now)
		}
	}
	lacking := g.lacks(&before, &a)
	switch {
	case now < g.until:
		return g.why
	case a.urgent:
		return NoHindrance
	case a.runnable > mostTurns:
		return NoPriority
	case lacking:
		return GroupLimit
	}
	return NoHindrance
}

// hinderedSince returns what has kept the sampling thread from a CPU for long since the last account, or what has made
// a pause long.
func hinderedSince(before, now *account, held int64) Hindrance {
	waited := int64(now.waited - before.waited)
	if before.turns == 0 || now.turns <= before.turns {
		waited = 0
	} else {
		waited /= int64(now.turns - before.turns)
	}
	switch {
	case !now.urgent && throttledSince(before, now):
		return GroupLimit
	case max(waited, held) < longWait:
		return NoHindrance
	case !now.urgent:
		return NoPriority
	case waited < longWait:
		return Stalled
	}
	return OthersFirst
}

func throttledSince(before, now *account) bool {
	for i := range min(len(before.groups), len(now.groups)) {
		if now.groups[i].throttled != before.groups[i].throttled {
			return true
		}
	}
	return false
}

// close refuses stops for a while.
func (g *gate) close(now int64) {
	if now >= g.calmAt {
		g.rest = 0
	}
	g.rest = min(max(2*g.rest, firstRest), mostRest)
	g.until, g.calmAt = now+g.rest, now+g.rest+calmFor
}

// lacks reports whether a group has used more than a quarter of what it may have in this period. The kernel hands out a
// quota in slices of 5 ms for each CPU (kernel/sched/fair.c, sched_cfs_bandwidth_slice), so a CPU may have no quota
// left before all of the quota is used.
func (g *gate) lacks(before, now *account) (lacks bool) {
	for len(g.began) < len(now.groups) { // nothing is known of the first period's use before now
		group := &now.groups[len(g.began)]
		g.began = append(g.began, group.used-group.quota)
	}
	for i := range now.groups {
		group := &now.groups[i]
		if i < len(before.groups) && group.period != before.groups[i].period {
			g.began[i] = before.groups[i].used // the period began after that reading
		}
		lacks = lacks || group.used-g.began[i] > group.quota/4
	}
	return lacks
}

// on is called on the OS thread that stops threads. A new OS thread without real-time priority first finds out how soon
// it has a CPU after a sleep.
func (g *gate) on(tid int) {
	if g.tid == tid {
		return
	}
	g.tid = tid
	g.sources.close()
	g.sources = openSources(tid)
	g.last, g.began, g.longest = g.sources.read(account{}, true), nil, 0
	if g.last.urgent {
		return
	}
	var ts unix.Timespec
	for range trialNaps {
		ts = unix.NsecToTimespec(Monotonic() + trialNap)
		SleepUntil(&ts)
		g.mayStop(Monotonic())
	}
}

// Holds counts stops that lasted too long, or might have.
type Holds struct {
	LeftOut [NumHindrances]int64 // stops that were not begun
	Over    [NumHindrances]int64 // pauses longer than StandsAtMost
}

// lateUnknown is the lateness for a look that is no visit.
const lateUnknown = -1

// admits reports whether a stop may begin now. late is how long the visit has waited, or lateUnknown. During a visit a
// thread of the target waits for the sampling thread, and asking the kernel takes time. So during visits admits asks
// only after a wait or a pause of longWait or more.
func (t *Tracer) admits(late int64) bool {
	g := t.openGate()
	var why Hindrance
	now := Monotonic()
	if g.longest = max(g.longest, late); late == lateUnknown || g.longest >= longWait {
		why = g.mayStop(now)
		t.settleHolds()
	} else if now < g.until {
		why = g.why
	}
	if why != NoHindrance {
		t.holds.LeftOut[why]++
	}
	return why == NoHindrance
}

func (t *Tracer) closeGate() {
	if t.gate != nil {
		t.gate.sources.close()
	}
}

func (t *Tracer) openGate() *gate {
	if t.gate == nil {
		t.gate = new(gate)
	}
	t.gate.on(t.owner)
	return t.gate
}

// noteHold records the length of a pause.
//
//go:nosplit
func (t *Tracer) noteHold(ns int64) {
	t.Pauses.Add(ns)
	if t.gate != nil {
		t.gate.longest = max(t.gate.longest, ns)
	}
	if ns > int64(StandsAtMost) {
		t.over++
	}
}

// keepUp reads how long the sampling thread has waited for a CPU, after a look of a visit. During visits, admits does
// not read it. Without keepUp, the gate would later see many short waits as one long wait.
func (t *Tracer) keepUp() {
	if g := t.gate; g.last.urgent && g.longest < longWait {
		g.last = g.sources.read(g.last, false)
	}
}

// settleHolds counts pauses that were too long under the cause that the gate has found.
func (t *Tracer) settleHolds() {
	if t.over > 0 {
		t.holds.Over[t.gate.why] += t.over
		t.over = 0
	}
}

// Holds returns the counts of stops so far.
func (t *Tracer) Holds() Holds {
	if t.over > 0 && t.gate != nil {
		t.gate.mayStop(Monotonic())
		t.settleHolds()
	}
	return t.holds
}

// Unbounded returns why stops could not be expected to end in time now, as a new OS thread of goprof finds it.
func Unbounded() (why Hindrance) {
	OnThreadHoldingNobody(func() {
		var g gate
		g.on(unix.Gettid())
		why = g.mayStop(Monotonic())
		g.sources.close()
	})
	return why
}

// sources are the files from which an account is read. They stay open, because a stop waits for the reads. -1: there is
// no such file.
type sources struct {
	urgent    bool
	schedstat int
	loadavg   int
	groups    []groupSource
	buf       [1024]byte
}

// groupSource is a control group with a limit.
type groupSource struct {
	quota time.Duration
	stat  int // its cpu.stat
}

func openSources(tid int) sources {
	s := sources{urgent: isUrgent(), schedstat: openFile(procfs.TaskFile(unix.Getpid(), tid, "schedstat")), loadavg: -1}
	if s.urgent {
		return s
	}
	s.loadavg = openFile("/proc/loadavg")
	for _, limit := range procfs.OwnCPULimits() {
		if fd := openFile(limit.Stat); fd >= 0 {
			s.groups = append(s.groups, groupSource{limit.Quota, fd})
		}
	}
	return s
}

func openFile(name string) int {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

func (s *sources) close() {
	if s.schedstat > 0 {
		unix.Close(s.schedstat)
	}
	if s.loadavg > 0 {
		unix.Close(s.loadavg)
	}
	for _, g := range s.groups {
		unix.Close(g.stat)
	}
	*s = sources{}
}

// read returns a new account. A value that is not asked for, or cannot be read, is taken from last.
func (s *sources) read(last account, runnable bool) account {
	a := last
	a.urgent = s.urgent
	if stat, ok := procfs.ParseSchedstat(s.file(s.schedstat)); ok {
		a.waited, a.turns = stat.Waited, stat.Turns
	}
	if runnable {
		if n, ok := procfs.Runnable(s.file(s.loadavg)); ok {
			a.runnable = n / runtime.NumCPU()
		}
	}
	a.groups = nil
	for i := range s.groups {
		g := groupAccount{quota: s.groups[i].quota}
		b := s.file(s.groups[i].stat)
		if t, ok := procfs.ParseThrottling(b); ok {
			g.period, g.throttled = t.Periods, t.Throttled
		}
		g.used = ownProcessCPU()
		if n, ok := procfs.Keyed(b, "usage_usec"); ok { // control groups of version 2
			g.used = procfs.Microseconds(n)
		}
		a.groups = append(a.groups, g)
	}
	return a
}

func (s *sources) file(fd int) []byte {
	if fd < 0 {
		return nil
	}
	n, err := unix.Pread(fd, s.buf[:], 0)
	if err != nil || n < 0 {
		return nil
	}
	return s.buf[:n]
}

// ownProcessCPU returns the CPU time that goprof has used. It replaces the group's CPU time if the group has no such
// count.
func ownProcessCPU() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
