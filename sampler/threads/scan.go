//go:build linux

package threads

import (
	"math/rand/v2"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/ptrace"
)

// Finding the threads that are due for a CPU sample, if goprof cannot visit CPUs (visit/visit.go says when it can).
//
// The kernel charges CPU time to each thread in /proc/PID/task/TID/schedstat. It does so at its ticks and when a thread
// leaves the CPU, so the counter is exact in the long run and up to a tick (1 to 10 ms) late. The List keeps an account
// for each thread: what the kernel charges is credit, and a sample costs one interval. A thread is due when it can pay
// and its state is R. goprof reads the state only if the thread can pay. It follows that
//
//	samples = CPU time / interval
//
// in the long run. The length of the kernel's ticks does not matter. Nor does it matter if there are more runnable
// threads than CPUs: state R includes waiting for a CPU, but credit does not.
//
// On a busy machine, most threads in state R wait for a CPU. Such a thread is where it lost its CPU. The scheduler or
// the thread's own system call chose that place, so it is no random sample. After the look, therefore, goprof reads
// again how long the thread has waited. If the thread had no CPU when the tick began, the look is no sample and the
// thread gets back what it paid (visit/account.go, takeLookBack).
//
// No thread is sampled asleep for CPU time that it used before: it keeps its credit until it is seen running. A thread
// that runs in short bursts (0.2 ms every 20 ms) is seen running at one tick in a hundred, which is its share of the
// time. Meanwhile it saves credit, so it can nearly always pay when it is seen running.
//
// What this misses:
//   - Threads that live shorter than the time between two listings (ListEvery).
//   - The first tick's worth of each thread, until the kernel has charged it.
//   - Credit above maxCredit is forfeited: after a time when goprof could not sample (goprof was suspended, or the
//     walker was behind), there is no burst of catching up.
//   - Cold threads (below) are looked at less often when there are more of them than fit the budget. Their bursts are
//     then met less often, and count when the threads become hot.
//   - State R is read some microseconds before the stop. A thread that goes to sleep in between is stopped in its
//     system call (1 in 10 for bursts of 0.1 ms).
const (
	// maxCredit bounds the CPU time for which a thread can be owed samples. If two intervals are more, the bound is two
	// intervals.
	maxCredit = int64(time.Second)
	// Hot threads are read at each tick: those that have run within HotFor, and those that are owed samples and have
	// run within owedFor. The others are cold.
	HotFor  = int64(100 * time.Millisecond)
	owedFor = int64(5 * time.Second)
	// Cold threads are read in turn if any of them has run (unseen.go). At each tick as many are read as a tenth of a
	// CPU permits, and at least one.
	coldShare = 10
	// goprof lists threads when their number changes, and when an unknown thread uses CPU time, with at most a
	// twentieth of a CPU. It also lists them every ListEvery (or listNoted, listGrouped), with at most a hundredth of a
	// CPU.
	ListEvery = int64(100 * time.Millisecond)
	listShare = 20
	listIdle  = 100
)

// Thread is what the List knows about one thread.
type Thread struct {
	TID     int
	Hint    ptrace.Hint
	Credit  int64
	Last    procfs.Schedstat
	Spent   int64            // CPU time since the thread was first seen
	Billed  uint64           // the thread's CPU time that samples carry, or that must be left out
	AtLook  procfs.Schedstat // the thread's charge at its last look
	LookAt  int64            // when the tick of that look began
	movedAt int64            // when the thread's CPU time was last seen to change
	fds     [numFDs]int32
	round   uint32 // the last listing that had the thread
	CPU     int16
	hot     bool
	owner   bool // has a bill of its own (pool.go)
	asleep  bool // the thread was not running when its state was last read
}

// The descriptors of a thread.
const (
	fdSchedstat = iota
	fdStat
	fdSched
	fdWchan

	numFDs
)

var fdNames = [numFDs]string{"schedstat", "stat", "sched", "wchan"}

var noFDs = [numFDs]int32{-1, -1, -1, -1}

// Upkeep says how a List is kept.
type Upkeep struct {
	HotFor int64 // how long a thread stays hot
	Relist int64 // how often threads are listed if their number is the same
	Pools  bool  // threads that have used little are billed together (pool.go)
}

// List finds the threads that are due. At each tick call Begin, then Next until nil.
type List struct {
	Proc     *procfs.Dir
	Interval int64
	rng      *rand.Rand

	upkeep   Upkeep
	skipping bool // some threads must be skipped

	ByTID  map[int]*Thread
	Hot    []*Thread
	cold   []*Thread
	owners []*Thread // threads with their own bills, if Pools is set

	ownersAt   int64     // when the owners were last read
	ownersCost int64     // CPU time of reading the owners
	spare      []*Thread // memory of ended threads, for new ones

	Now      int64
	start    int // the first of this tick's hot threads
	done     int // how many of them are done
	ofHot    int
	nextCold int
	coldLeft int
	coldRead int   // cold threads that were read in this tick
	coldCost int64 // CPU time of one cold read, averaged
	lastTick int64

	Bills    bills
	unseen   unseen
	search   search
	Round    uint32
	met      []*Thread // threads that the last listing found for the first time
	listedAt int64
	listCost int64
	counted  int // threads in the last listing
	seen     func(tid int)

	kept    KeptFiles
	giveUp  func()
	noStats bool // no schedstat in this kernel: clock ticks instead
	ts      unix.Timespec
}

// New makes a List of the threads of a process. A thread has one sample in interval of CPU time. The List keeps at most
// fds descriptors. Close it at the end.
func New(proc *procfs.Dir, interval time.Duration, fds int) *List {
	s := &List{
		Proc:     proc,
		Interval: int64(interval),
		rng:      rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		ByTID:    make(map[int]*Thread),
		upkeep:   Upkeep{HotFor, ListEvery, false},
		coldCost: 1000,
		search:   search{chance: 1},
		kept:     KeepFiles(fds),
	}
	s.seen, s.giveUp = s.noteListed, s.giveUpFiles
	s.BeginBills()
	own, ok := procfs.ParseSchedstat(proc.Read(proc.PID, "schedstat"))
	s.noStats = !ok || own.Turns == 0
	return s
}

// Keep sets how the List is kept from now on.
func (s *List) Keep(u Upkeep) { s.upkeep = u }

// HasStats reports whether the kernel reports exact charges.
func (s *List) HasStats() bool { return !s.noStats }

// BeginBills begins the account of CPU time.
func (s *List) BeginBills() {
	s.Bills.begin(s.Proc.PID)
	s.unseen.base = s.Bills.Now
}

// Close closes all descriptors.
func (s *List) Close() {
	for _, th := range s.ByTID {
		s.closeFiles(th)
	}
}

// SetHint sets a thread's hint, and reports whether the thread is in the list.
func (s *List) SetHint(tid int, hint ptrace.Hint) bool {
	th := s.ByTID[tid]
	if th != nil {
		if th.Hint.Skip && !hint.Skip { // the thread's time so far was to be skipped
			s.Bills.skipped += th.owed()
			s.Bills.owed -= th.owed()
			th.Billed = max(th.Billed, th.Last.Ran)
		}
		th.Hint = hint
	}
	s.skipping = s.skipping || hint.Skip
	return th != nil
}

// Begin starts a tick. It returns the time since the last tick began.
func (s *List) Begin() (gap int64) {
	s.Now = ptrace.Monotonic()
	if s.lastTick > 0 {
		gap = s.Now - s.lastTick
	}
	if gap > LongGap+s.Interval {
		s.ForgiveUse()
	}
	s.readClock()
	s.list()
	since := min(s.Now-s.lastTick, int64(time.Second))
	s.lastTick = s.Now
	s.coldLeft = min(int(since/coldShare/s.coldCost)+1, len(s.cold))
	s.ofHot, s.done, s.start, s.coldRead = len(s.Hot), 0, 0, 0
	if s.ofHot > 0 {
		s.start = s.rng.IntN(s.ofHot)
	}
	return gap
}

// WasAway reports whether goprof could not look for a while after the last tick.
func (s *List) WasAway(now int64) bool { return s.lastTick != 0 && now-s.lastTick > LongGap+s.Interval }

// Watched notes that goprof could have looked at any time since the last tick. There were no ticks because there was
// nothing to do, so the CPU time since then counts.
func (s *List) Watched(now int64) { s.lastTick = max(s.lastTick, now-LongGap/2) }

// Next returns the next thread that is due in this tick, nil at the end of the tick.
//
// Hot threads come first. Each tick begins with another hot thread, so that no thread always comes after another.
func (s *List) Next() *Thread { return s.nextThat(s.isDue) }

// Update is a tick in which no thread is due. It updates the lists and the charges.
func (s *List) Update() { s.nextThat(s.BringUpToDate) }

func (s *List) nextThat(asked func(*Thread) bool) *Thread {
	for s.done < s.ofHot {
		th := s.Hot[(s.start+s.done)%s.ofHot]
		s.done++
		if th.TID != 0 && asked(th) {
			return th
		}
	}
	s.decideAskingCold()
	return s.nextOfCold(asked)
}

// nextOfCold returns the next cold thread that is due in this tick, nil if there is none.
func (s *List) nextOfCold(asked func(*Thread) bool) *Thread {
	if s.coldLeft <= 0 {
		return nil
	}
	began, n := s.OwnCPUTime(), int64(0)
	var due *Thread
	for ; s.coldLeft > 0 && due == nil; s.coldLeft-- {
		if n > 0 && s.unseen.asking == 0 && !s.noStats {
			s.coldLeft = 0 // no other cold thread has run
			break
		}
		th := s.takeCold()
		if th == nil {
			s.coldLeft = 0
			break
		}
		n++
		s.coldRead++
		found := s.unseen.found
		if asked(th) {
			due = th
		}
		s.unseen.noteAsked(s.unseen.found - found)
		if th.TID == 0 || th.hot {
			s.nextCold-- // back, so that takeCold takes the thread off the list
		}
	}
	if n > 0 {
		cost := (s.OwnCPUTime() - began) / n
		s.coldCost = max((s.coldCost*7+cost)/8, 100)
	}
	return due
}

// isDue updates a thread's account, and reports whether to sample the thread now.
func (s *List) isDue(th *Thread) bool {
	stat, ok := s.Charged(th)
	if !ok {
		s.forget(th)
		return false
	}
	changed := s.UpdateAccount(th, stat)
	if th.Hint.Skip {
		th.Credit = 0
	}
	if th.Credit < s.Interval {
		return false
	}
	// To run, a thread must be given a CPU, which counts as a turn. A thread that was asleep at the last look and has
	// had no turn since is still asleep, so its state need not be read.
	if !changed && th.asleep && !s.noStats {
		return false
	}
	now, _ := procfs.ParseStat(s.readFile(th, fdStat))
	th.asleep = now.State != 'R'
	th.CPU = int16(now.CPU)
	return !th.asleep
}

// BringUpToDate updates a thread's account. It always returns false: the thread is owed no sample.
func (s *List) BringUpToDate(th *Thread) bool {
	if s.Lives(th) {
		th.Credit = 0
	}
	return false
}

// Lives updates a thread's account, and reports whether the thread has not ended.
func (s *List) Lives(th *Thread) bool {
	stat, ok := s.Charged(th)
	if ok {
		s.UpdateAccount(th, stat)
	} else {
		s.forget(th)
	}
	return ok
}

// ReadAllCharges updates the accounts of all threads.
func (s *List) ReadAllCharges() {
	for _, th := range s.ByTID {
		s.Lives(th)
	}
}

// OwnCPUTime returns the CPU time of this OS thread. The cost of a read is measured in CPU time, so it does not depend
// on how busy the machine is.
func (s *List) OwnCPUTime() int64 {
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&s.ts)), 0)
	return s.ts.Nano()
}

// PayForSample takes one sample's price from a thread's account.
func (s *List) PayForSample(th *Thread) { th.Credit -= s.Interval }

// Charged returns what the kernel has charged a thread.
func (s *List) Charged(th *Thread) (procfs.Schedstat, bool) {
	if !s.noStats {
		return procfs.ParseSchedstat(s.readFile(th, fdSchedstat))
	}
	stat, _ := procfs.ParseStat(s.readFile(th, fdStat))
	return procfs.Schedstat{Ran: stat.Ticks * uint64(procfs.Tick)}, stat.State != 0
}

// Sleeps reports whether a thread sleeps and has left the queue of its CPU. Only then the kernel reports a place where
// the thread waits (kernel/sched/core.c, get_wchan). A thread that was preempted just before it sleeps has state S,
// too, but is still in the queue. Reading the system call of such a thread would take milliseconds
// (wait_task_inactive).
func (s *List) Sleeps(th *Thread) bool {
	if waits, told := procfs.InKernel(s.readFile(th, fdWchan)); told {
		return waits
	}
	return procfs.State(s.readFile(th, fdStat)) != 'R' // a kernel without the names of its functions
}

// HasSuccessor forgets a thread that has ended, and reports whether its number has passed to another thread of the
// process. A visit does not check that before the look. If the number has passed to another thread, the look used wrong
// facts, such as the place of the stack.
func (s *List) HasSuccessor(th *Thread) bool {
	tid := th.TID
	s.forget(th)
	return s.Proc.Owns(tid)
}

// HadNoCPU reports whether a thread had no CPU at lookAt, when the look began. It compares the thread's charges before
// the look (before) and after the look (after, read at now).
func HadNoCPU(before, after procfs.Schedstat, now, lookAt int64) bool {
	if after.Turns == before.Turns {
		return false // the thread has had its CPU all the time
	}
	// The thread waited for a CPU before it could stop. If its wait began when the sampling thread woke up, the
	// sampling thread has taken the CPU from it: the look is a sample. If its wait began earlier, another thread has
	// taken the CPU: the look is no sample.
	return now-int64(after.Waited-before.Waited) < lookAt
}
