//go:build linux

package threads

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler"
	"goprof/sampler/look"
)

// How CPU time is assigned to threads and samples.
//
// A sample counts one. It also carries the CPU time that its thread has used since the sample before (look.Look.CPU).
// goprof reads after the stop what the kernel has charged. So the sum over a profile is the CPU time of the process,
// even if samples came late or at uneven intervals. Time goes only to a stack that was seen on a CPU. If a thread is
// found asleep, its time waits for the thread's next stack on a CPU. Time that finds no such stack is NotSampled. When
// a thread ends, the rest of its time is lost with it, and some threads come and go between two listings. Only the
// process's own clock shows the time of these: it counts threads that have ended, too.

// bills keeps the account.
type bills struct {
	clock   int32 // the process's CPU clock
	Base    int64 // what the clock said at the beginning
	Now     int64 // what the clock said last: it ends with the process
	given   int64 // to samples
	left    int64 // of ended threads: charged and not given
	pooled  int64 // charged to threads that have used little, and not given, as far as these threads have been read
	Excused int64 // used while goprof could not look (forgive.go)
	skipped int64 // the same as left, of threads that were to be skipped
	stopped bool
	owed    int64 // charged to threads that live and have bills of their own, or are to be skipped, and not given
}

// ProcessClock is the clock of all CPU time of a process, threads that have ended included
// (include/linux/posix-timers_types.h, make_process_cpuclock, CPUCLOCK_SCHED). Anybody may read this clock.
func ProcessClock(pid int) int32 { return int32(^pid<<3 | 2) }

func (b *bills) begin(pid int) {
	b.clock = ProcessClock(pid)
	b.read()
	b.Base = b.Now
}

// Stop ends the account: CPU time that the process uses after this is not counted.
func (b *bills) Stop() {
	b.read()
	b.stopped = true
}

func (b *bills) read() {
	if b.stopped {
		return
	}
	var ts unix.Timespec
	clock, at := uintptr(int(b.clock)), uintptr(unsafe.Pointer(&ts))
	if _, _, e := syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, clock, at, 0); e == 0 { // a thread may stand still
		b.Now = ts.Nano()
	}
}

// BillSample bills a thread for what the kernel has charged it since its last sample. A thread that was found asleep
// gets no bill: it did not use the time where it sleeps.
func (b *bills) BillSample(th *Thread, charged uint64, asleep bool, snap *look.Look) {
	if charged <= th.Billed || asleep {
		return
	}
	owed := int64(charged - th.Billed)
	snap.CPU += owed
	b.given += owed
	b.owed -= owed
	th.Billed = charged
}

// IsInterrupted reports whether a thread slept in a system call until it was told to stop. The kernel then means to
// make the call again (include/linux/errno.h, ERESTARTSYS to ERESTART_RESTARTBLOCK), or has prepared that already.
func IsInterrupted(cpu *arch.CPU, call int64, result uint64) bool {
	return call >= 0 && (cpu.SetsBack() || -int64(result) >= 512 && -int64(result) <= 516)
}

func (b *bills) end(th *Thread) {
	b.owed -= int64(th.Last.Ran) - int64(th.Billed) // below 0 if a sample carries more than was read
	if th.Hint.Skip {
		b.skipped += th.owed()
	} else {
		b.left += th.owed()
	}
}

// lateCharge is how late the kernel may charge running threads: a tick (HZ=100) for each. No more threads run than
// there are CPUs.
var lateCharge = int64(10*time.Millisecond) * int64(runtime.NumCPU())

// Sum is the account so far. over: the run is. If threads are billed together, it is not known which of them have
// ended.
func (s *List) Sum(over bool) sampler.Times {
	return s.Bills.sum(s.ByTID, over && !s.upkeep.Pools, s.Interval)
}

// sum returns the account so far. When the run is over, all living threads have been read. What the process's clock has
// beyond their sum was used by threads that have ended. During the run this rest is not known, because some threads
// were not read lately. interval is the CPU time of one sample.
func (b *bills) sum(threads map[int]*Thread, over bool, interval int64) sampler.Times {
	b.read()
	unsampled, skipped, small := b.Excused, b.skipped, int64(0)
	for _, th := range threads {
		owed := th.owed()
		switch {
		case th.Hint.Skip:
			skipped += owed
			continue
		case owed < interval:
			small += owed
		}
		unsampled += owed
	}
	t := sampler.Times{Sampled: time.Duration(b.given), Exited: time.Duration(b.left)}
	switch rest := b.Now - b.Base - b.given - unsampled - b.left - skipped; {
	case rest > lateCharge && over:
		t.Exited += time.Duration(rest)
	case rest > 0:
		unsampled += rest
		small += rest // of the pool, or not read yet
	case b.stopped: // threads were read later than the process's clock
		unsampled = max(unsampled+rest, 0)
	}
	t.NotSampled, t.Unwatched = time.Duration(unsampled), time.Duration(min(b.Excused, unsampled))
	t.Small = min(time.Duration(small), t.NotSampled-t.Unwatched)
	t.Process = t.Sampled + t.NotSampled + t.Exited
	return t
}

// owed returns the time that the kernel has charged a thread and that no sample carries.
func (th *Thread) owed() int64 { return int64(th.Last.Ran - min(th.Last.Ran, th.Billed)) }

// ProcessCPU is the CPU time that a process has used, threads that have ended included. It is 0 if there is no such
// process.
func ProcessCPU(pid int) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(ProcessClock(pid), &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
