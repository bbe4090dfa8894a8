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

// Assigning CPU time to threads and samples.
//
// A sample counts one. It also carries the CPU time that its thread has used since the thread's last sample
// (look.Look.CPU). goprof reads the kernel's charge after the stop. So the sum over a profile is the CPU time of the
// process, even if samples came late or at uneven intervals. Time goes only to a stack that was seen on a CPU. If a
// thread is found asleep, its time waits for the thread's next stack on a CPU. Time that finds no such stack is
// NotSampled. When a thread ends, the rest of its time can no longer be read. Some threads come and go between two
// listings. Only the process's own clock includes the time of these threads.

type bills struct {
	clock   int32 // the process's CPU clock
	Base    int64 // the clock at the beginning
	Now     int64 // the clock's last reading: it ends with the process
	given   int64 // CPU time that samples carry
	left    int64 // charged to threads that have ended, but not given
	pooled  int64 // charged to threads that have used little, but not given, as far as these threads were read
	Excused int64 // used while goprof could not look (forgive.go)
	skipped int64 // charged to ended threads that were to be skipped
	stopped bool
	owed    int64 // charged, but not given, to living threads with own bills or to be skipped
}

// ProcessClock returns the clock of all CPU time of a process, including ended threads
// (include/linux/posix-timers_types.h, make_process_cpuclock, CPUCLOCK_SCHED). Every user may read this clock.
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
	if _, _, e := syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, clock, at, 0); e == 0 { // no allocation: a pause
		b.Now = ts.Nano()
	}
}

// BillSample bills a thread for what the kernel has charged it since its last sample. A thread that was found asleep
// gets no bill: it did not use that time at the place where it sleeps.
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

// IsInterrupted reports whether a thread slept in a system call until it was told to stop. The kernel is then about to
// restart the call (include/linux/errno.h, ERESTARTSYS to ERESTART_RESTARTBLOCK), or has set the pc back to it.
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

// lateCharge bounds how much running threads have used without being charged: a tick (HZ=100) for each, and not more
// threads run than there are CPUs.
var lateCharge = int64(10*time.Millisecond) * int64(runtime.NumCPU())

// Sum returns the account so far. over: the run is over. If threads are billed together, Sum does not know which of
// them have ended.
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
		small += rest // threads in the pool, or threads that were not read yet
	case b.stopped: // the threads were read after the process's clock
		unsampled = max(unsampled+rest, 0)
	}
	t.NotSampled, t.Unwatched = time.Duration(unsampled), time.Duration(min(b.Excused, unsampled))
	t.Small = min(time.Duration(small), t.NotSampled-t.Unwatched)
	t.Process = t.Sampled + t.NotSampled + t.Exited
	return t
}

// owed returns the time that the kernel has charged a thread and that no sample carries.
func (th *Thread) owed() int64 { return int64(th.Last.Ran - min(th.Last.Ran, th.Billed)) }

// ProcessCPU returns the CPU time of a process, including ended threads. It returns 0 if there is no such process.
func ProcessCPU(pid int) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(ProcessClock(pid), &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
