//go:build linux

package sampler

import (
	"math/rand/v2"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/ptrace"
)

// Which threads are due for a CPU sample, where CPUs cannot be visited (visit.go says where that can be done).
//
// The kernel charges CPU time to each thread in /proc/PID/task/TID/schedstat. It does so
// at its ticks and when a thread leaves the CPU, so the counter is exact in the long run and up to a tick (1 to 10 ms)
// late. We keep an account for each thread: what the kernel charges is credit, and a sample costs one interval. A
// thread is due when it can pay and is on a CPU now: its state is R. The state is read only if the thread can pay. So
//
//	samples = CPU time / interval
//
// in the long run, whatever the kernel's ticks are, and whether or not there are
// more runnable threads than CPUs: R includes waiting for a CPU, the account does not.
//
// Where CPUs are short, most threads in state R wait for one. Such a thread stands where it lost its CPU, however often
// it is looked at. The scheduler or the thread's own system call chose that place. So the time that the thread has
// waited is read again after the look. If the thread had no CPU when the tick began, the look is no sample and the
// thread gets back what it paid (account.go, refund).
//
// A thread is never sampled for time that it spent earlier in another place: a thread that is found asleep keeps its
// credit until it is seen running. A thread that runs in short bursts (0.2 ms every 20 ms) is seen running at one tick
// in a hundred, which is its share of the time. It saves credit meanwhile, and can nearly always pay when it is seen
// running.
//
// What this misses:
//   - Threads that live shorter than the time between two listings (listEvery).
//   - The first tick's worth of each thread, until the kernel has charged it.
//   - Credit above maxCredit is forfeited: after a time when we could not sample (we
//     were suspended, or the walker was behind), there is no burst of catching up.
//   - Cold threads (below) are looked at less often when there are more of them than fit the budget. Their bursts are
//     then met less often, and count when the threads become hot.
//   - State R is read some microseconds before the stop. A thread that goes to sleep in
//     between is stopped in its system call (1 in 10 for bursts of 0.1 ms).
const (
	// maxCredit is how much CPU time a thread can be owed samples for, or two samples' worth.
	maxCredit = int64(time.Second)
	// Threads that have run lately, or are owed samples and have run in the last
	// seconds, are hot: read at each tick. The others are cold.
	hotFor  = int64(100 * time.Millisecond)
	owedFor = int64(5 * time.Second)
	// Cold threads are read in turn if any of them has run (unseen.go): at each tick as many as a tenth of a CPU can
	// read, and one in any case.
	coldShare = 10
	// New threads are looked for when the number of threads changes, and when a thread that we do not know uses CPU
	// time. That may take at most a twentieth of a CPU. They are also looked for every listEvery in any case
	// (listNoted, listGrouped), with at most a hundredth of a CPU.
	listEvery = int64(100 * time.Millisecond)
	listShare = 20
	listIdle  = 100
)

// thread is what the scan knows of one thread.
type thread struct {
	tid     int
	hint    ptrace.Hint
	credit  int64
	last    procfs.Schedstat
	spent   int64            // since the thread was met
	billed  uint64           // the part of the thread's CPU time that samples carry, or that is no matter of ours
	atLook  procfs.Schedstat // what the kernel had charged the thread at its last look
	lookAt  int64            // when the tick of that look began
	movedAt int64            // when the thread's CPU time was last seen to have changed
	fds     [numFDs]int32
	round   uint32 // of the listing that saw it last
	cpu     int16
	hot     bool
	owner   bool // of a bill of its own (bill.go)
	asleep  bool // the thread was not running when its state was last read
}

// Which descriptor of a thread.
const (
	fdSchedstat = iota
	fdStat
	fdSched
	fdWchan

	numFDs
)

var fdNames = [numFDs]string{"schedstat", "stat", "sched", "wchan"}

var noFDs = [numFDs]int32{-1, -1, -1, -1}

// scan finds the threads that are due. At each tick call begin, then next until nil.
type scan struct {
	proc     *procfs.Dir
	interval int64
	rng      *rand.Rand

	hotFor   int64
	relist   int64 // how often threads are listed whose number has not changed
	pools    bool  // threads that have used little are billed together (bill.go)
	skipping bool  // some threads are to be skipped

	byTID  map[int]*thread
	hot    []*thread
	cold   []*thread
	owners []*thread // threads with bills of their own, where most threads have none

	ownersAt   int64     // when the owners were asked last
	ownersCost int64     // CPU time of that
	spare      []*thread // of ended threads, to be used again

	now      int64
	start    int // first of this tick's hot threads
	done     int // how many of them are done
	ofHot    int
	nextCold int
	coldLeft int
	coldRead int   // in this tick
	coldCost int64 // CPU time of one cold read, averaged
	lastTick int64

	bills    bills
	unseen   unseen
	round    uint32
	met      []*thread // threads that the last listing met for the first time
	listedAt int64
	listCost int64
	counted  int
	dirents  []byte
	seen     func(tid int)

	kept    keptFiles
	giveUp  func()
	noStats bool // no schedstat in this kernel: clock ticks instead
	ts      unix.Timespec
}

func newScan(proc *procfs.Dir, interval time.Duration, fds int) *scan {
	s := &scan{
		proc:     proc,
		interval: int64(interval),
		rng:      rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		byTID:    make(map[int]*thread),
		hotFor:   hotFor,
		relist:   listEvery,
		coldCost: 1000,
		dirents:  make([]byte, 32<<10),
		kept:     keptFiles{fds, fds},
	}
	s.seen, s.giveUp = s.noteListed, s.giveUpFiles
	s.beginBills()
	own, ok := procfs.ParseSchedstat(proc.Read(proc.PID, "schedstat"))
	s.noStats = !ok || own.Turns == 0
	return s
}

// beginBills begins the account of CPU time.
func (s *scan) beginBills() {
	s.bills.begin(s.proc.PID)
	s.unseen.base = s.bills.now
}

// close gives back all descriptors.
func (s *scan) close() {
	for _, th := range s.byTID {
		s.closeFiles(th)
	}
}

// setHint notes what is known of a thread, and reports whether the thread is in the list.
func (s *scan) setHint(tid int, hint ptrace.Hint) bool {
	th := s.byTID[tid]
	if th != nil {
		if th.hint.Skip && !hint.Skip { // what the thread has used so far was to be skipped
			s.bills.skipped += th.owed()
			s.bills.owed -= th.owed()
			th.billed = max(th.billed, th.last.Ran)
		}
		th.hint = hint
	}
	s.skipping = s.skipping || hint.Skip
	return th != nil
}

// begin starts a tick. It returns the time since the last tick began.
func (s *scan) begin() (gap int64) {
	s.now = ptrace.Monotonic()
	if s.lastTick > 0 {
		gap = s.now - s.lastTick
	}
	if gap > longGap+s.interval {
		s.forgiveUse()
	}
	s.readClock()
	s.list()
	since := min(s.now-s.lastTick, int64(time.Second))
	s.lastTick = s.now
	s.coldLeft = min(int(since/coldShare/s.coldCost)+1, len(s.cold))
	s.ofHot, s.done, s.start, s.coldRead = len(s.hot), 0, 0, 0
	if s.ofHot > 0 {
		s.start = s.rng.IntN(s.ofHot)
	}
	return gap
}

// next returns the next thread that is due in this tick, nil at the end of the tick.
//
// Hot threads go first. They begin with any of them, so that no thread is always behind another.
func (s *scan) next() *thread { return s.nextThat(s.isDue) }

// update is a tick in which no thread is due. It finds out only which threads there are, which have run, and for how
// long.
func (s *scan) update() { s.nextThat(s.bringUpToDate) }

// nextThat returns the next thread of this tick for which asked is true.
func (s *scan) nextThat(asked func(*thread) bool) *thread {
	for s.done < s.ofHot {
		th := s.hot[(s.start+s.done)%s.ofHot]
		s.done++
		if th.tid != 0 && asked(th) {
			return th
		}
	}
	s.decideAskingCold()
	return s.nextOfCold(asked)
}

func (s *scan) nextOfCold(asked func(*thread) bool) *thread {
	if s.coldLeft <= 0 {
		return nil
	}
	began, n := s.ownCPUTime(), int64(0)
	var due *thread
	for ; s.coldLeft > 0 && due == nil; s.coldLeft-- {
		if n > 0 && s.unseen.asking == 0 && !s.noStats {
			s.coldLeft = 0 // no other has run
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
		if th.tid == 0 || th.hot {
			s.nextCold-- // back, so that takeCold takes the thread off the list
		}
	}
	if n > 0 {
		cost := (s.ownCPUTime() - began) / n
		s.coldCost = max((s.coldCost*7+cost)/8, 100)
	}
	return due
}

// isDue brings a thread's account up to date and says whether to sample it now.
func (s *scan) isDue(th *thread) bool {
	stat, ok := s.charged(th)
	if !ok {
		s.forget(th)
		return false
	}
	changed := s.updateAccount(th, stat)
	if th.hint.Skip {
		th.credit = 0
	}
	if th.credit < s.interval {
		return false
	}
	// To run, a thread must be given a CPU, which counts as a turn. A thread that was asleep at the last look and has
	// had no turn since is still asleep: its state need not be read.
	if !changed && th.asleep && !s.noStats {
		return false
	}
	now, _ := procfs.ParseStat(s.readFile(th, fdStat))
	th.asleep = now.State != 'R'
	th.cpu = int16(now.CPU)
	return !th.asleep
}

// bringUpToDate reads what a thread was charged. It always returns false: no thread is owed a sample.
func (s *scan) bringUpToDate(th *thread) bool {
	if s.lives(th) {
		th.credit = 0
	}
	return false
}

// lives reads what a thread was charged, and reports whether the thread has not ended.
func (s *scan) lives(th *thread) bool {
	stat, ok := s.charged(th)
	if ok {
		s.updateAccount(th, stat)
	} else {
		s.forget(th)
	}
	return ok
}

// readAllCharges reads what all threads have been charged since they were last read.
func (s *scan) readAllCharges() {
	for _, th := range s.byTID {
		s.lives(th)
	}
}

// ownCPUTime is the CPU time that our OS thread has used. The cost of a read is measured in CPU time, so it does not
// depend on how busy the machine is.
func (s *scan) ownCPUTime() int64 {
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&s.ts)), 0)
	return s.ts.Nano()
}

// payForSample takes the price of one sample off a thread's account.
func (s *scan) payForSample(th *thread) { th.credit -= s.interval }

// charged reads what the kernel has charged a thread.
func (s *scan) charged(th *thread) (procfs.Schedstat, bool) {
	if !s.noStats {
		return procfs.ParseSchedstat(s.readFile(th, fdSchedstat))
	}
	stat, _ := procfs.ParseStat(s.readFile(th, fdStat))
	return procfs.Schedstat{Ran: stat.Ticks * uint64(procfs.Tick)}, stat.State != 0
}
