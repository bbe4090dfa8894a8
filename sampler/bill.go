//go:build linux

package sampler

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler/look"
)

// Whose CPU time it was.
//
// A sample counts one. It also carries the time that its thread has used since the sample before
// (look.Look.CPU), as the kernel charged it, read after the stop: so the sum over a profile is
// what the process has used, however late or uneven the samples came. Time goes only to a stack
// that was seen on a CPU. That of a thread found asleep waits for its next such stack; what finds
// none is not sampled. Threads that end take their rest with them, and some come and go between two
// listings: those are known by the process's own clock alone, which counts threads that have ended, too.

// Times is where the CPU time of the process went. Process = Sampled + NotSampled + Exited.
type Times struct {
	Process    time.Duration // what the process used during the run, without threads to be skipped
	Sampled    time.Duration // what samples carry
	NotSampled time.Duration // of threads that live, but were not seen on a CPU after they had used it
	Exited     time.Duration // of threads that had ended before a sample could carry it
}

// bills keeps the account.
type bills struct {
	clock   int32 // the process's CPU clock
	base    int64 // what it said at the beginning
	now     int64 // what it said last: it ends with the process
	given   int64 // to samples
	left    int64 // of ended threads: charged and not given
	pooled  int64 // charged to threads that have used little, and not given, as far as they have been read
	excused int64 // used while nobody could look (forgive.go)
	skipped int64 // the same as left, of those that were to be skipped
	owed    int64 // charged to threads that live and have bills of their own, or are to be skipped, and not given
}

// processClock is the clock of all CPU time of a process, that of threads that have ended too
// (include/linux/posix-timers_types.h, make_process_cpuclock, CPUCLOCK_SCHED). Anybody may read it.
func processClock(pid int) int32 { return int32(^pid<<3 | 2) }

func (b *bills) begin(pid int) {
	b.clock = processClock(pid)
	b.read()
	b.base = b.now
}

func (b *bills) read() {
	var ts unix.Timespec
	if unix.ClockGettime(b.clock, &ts) == nil {
		b.now = ts.Nano()
	}
}

// billSample bills a thread for what it was charged since its last sample. A thread that was found
// asleep gets no bill: its stack is not where the time went.
func (b *bills) billSample(th *thread, charged uint64, asleep bool, snap *look.Look) {
	if charged <= th.billed || asleep {
		return
	}
	owed := int64(charged - th.billed)
	snap.CPU += owed
	b.given += owed
	b.owed -= owed
	th.billed = charged
}

// Threads that have used little are billed together. Most threads of a large pool are never sampled, or once, and some
// end before anybody has listed them: what they used would be nobody's. So all that the process has used, but for what
// others owe, goes to the samples of any of them. That is right on the average, for who of them is sampled follows from
// what they use.

// poolBelow is how many samples' worth of CPU time a thread has used when it begins to have a bill of its own.
const poolBelow = 10

// isPooled reports whether a thread has no bill of its own.
func (s *scan) isPooled(th *thread) bool {
	return s.pools && !th.hint.Skip && th.spent < poolBelow*s.interval
}

// owe notes what a thread was charged.
func (s *scan) owe(th *thread, ran uint64, used int64) {
	if !s.isPooled(th) {
		s.bills.owed += used
		return
	}
	th.spent += used
	th.billed = ran
	s.bills.pooled += used
	if !s.isPooled(th) {
		th.owner = true
		s.owners = append(s.owners, th)
	}
}

// bookOwners brings those up to date that have bills of their own: what they owe is not the pool's.
func (s *scan) bookOwners() {
	keep := s.owners[:0]
	for _, th := range s.owners {
		if th.tid == 0 || !th.owner { // it has ended, and may be another one now
			continue
		}
		s.bringUpToDate(th)
		keep = append(keep, th)
	}
	s.owners = keep
}

// billPooled bills a sample of a thread that has used little for all such threads.
func (s *scan) billPooled(th *thread, snap *look.Look) {
	if !s.isPooled(th) {
		return
	}
	b := &s.bills
	b.read() // before: what owners use meanwhile makes the pool smaller, never greater
	s.bookOwners()
	pool := b.now - b.base - b.given - b.owed - b.left - b.skipped - b.excused
	if s.skipping { // whether anybody wants threads that nobody has read, is not known
		pool = min(pool, b.pooled)
	}
	pool = max(pool, 0)
	snap.CPU += pool
	b.given += pool
	b.pooled = max(b.pooled-pool, 0)
}

// isInterrupted reports whether a thread slept in a system call until it was told to stop: the kernel
// then means to call again (include/linux/errno.h, ERESTARTSYS to ERESTART_RESTARTBLOCK), or has prepared that.
func isInterrupted(cpu *arch.CPU, call int64, result uint64) bool {
	return call >= 0 && (cpu.SetsBack() || -int64(result) >= 512 && -int64(result) <= 516)
}

// end closes the account of a thread that has ended.
func (b *bills) end(th *thread) {
	b.owed -= th.owed()
	if th.hint.Skip {
		b.skipped += th.owed()
	} else {
		b.left += th.owed()
	}
}

// lateCharge is how late the kernel may charge a running thread: a tick (HZ=100). There are no more of
// them than CPUs.
var lateCharge = int64(10*time.Millisecond) * int64(runtime.NumCPU())

// sum is the account so far. When the run is over, and all threads that live have been read, what the process's clock
// says more, others have used that have ended. Before, nobody knows whose it is.
func (b *bills) sum(threads map[int]*thread, over bool) Times {
	b.read()
	unsampled, skipped := b.excused, b.skipped
	for _, th := range threads {
		if th.hint.Skip {
			skipped += th.owed()
		} else {
			unsampled += th.owed()
		}
	}
	t := Times{Sampled: time.Duration(b.given), NotSampled: time.Duration(unsampled), Exited: time.Duration(b.left)}
	switch rest := b.now - b.base - b.given - unsampled - b.left - skipped; {
	case rest > lateCharge && over:
		t.Exited += time.Duration(rest)
	case rest > 0:
		t.NotSampled += time.Duration(rest)
	}
	t.Process = t.Sampled + t.NotSampled + t.Exited
	return t
}

// owed is what a thread has been charged and no sample carries.
func (th *thread) owed() int64 { return int64(th.last.Ran - min(th.last.Ran, th.billed)) }
