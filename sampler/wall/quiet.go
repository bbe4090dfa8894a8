//go:build linux

package wall

import (
	"bytes"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// Finding out that threads have not moved, without reading a file of each.
//
// The process's clock is the sum of the CPU times that the threads' schedstat shows, and of the CPU times of threads
// that have ended (kernel/sched/cputime.c, thread_group_cputime, read_sum_exec_runtime). So the clock may be ahead of
// the sum that goprof has read. The difference has two parts: the time of ended threads, and the time that living
// threads have used since they were read. The first part does not change while no thread ends. If the difference equals
// the first part to the nanosecond, no thread has run since: all threads that were not read are where they were. The
// clock costs the kernel a walk over the process's threads, a fifteenth of the cost of reading a file of each.
//
// For a thread on a CPU, neither the clock nor schedstat includes the time since the last tick. Only the thread's own
// file shows that it got the CPU. So one case is missed: a thread that runs for the first time in a second, has been on
// its CPU for less than a tick, and is the only one that has run. Such a thread still counts as not moved. If ticks may
// be rare (nohz_full, kernel/sched/core.c, sched_tick_remote), the clock is not used.
//
// The kernel does not report the time of ended threads, but goprof can find it. If the difference is the same at two
// moments, and every thread was read between them, then the difference is the time of ended threads. If a living thread
// had used time that was not read before the first moment, its reading would have made the difference smaller.

// quiet is what goprof knows of this difference for a watchList.
type quiet struct {
	clock int32
	sum   int64 // the sum of all threads' last readings
	left  int64 // the difference if no thread has run; unknown after a thread has ended
	other int64 // a second value of the difference, first seen at read number since
	since uint64
	reads uint64
	vain  int  // comparisons in a row without result
	now   bool // no thread but the hot ones has moved since its reading
	skips bool // some threads must not be looked at: reading these costs more than the clock saves
	ticks bool // a CPU has ticks whenever a thread runs there
	at    int64
	hot   []*watched // threads that moved lately: they are read before the clock
}

const (
	unknown = -1
	// clockWorth is a lower bound of the threads that the clock adds up in the time that one file takes.
	clockWorth = 16
	// coolAfter is how long a thread stays hot after it moved.
	coolAfter = int64(time.Second)
	// After vainMost comparisons in a row without result, goprof makes only one in seldomEach.
	vainMost   = 2 * mostSlots
	seldomEach = 16
)

// allCPUsTick reports whether this machine has no CPU that may run a thread without a tick.
func allCPUsTick() bool {
	list, err := os.ReadFile("/sys/devices/system/cpu/nohz_full") // without such CPUs the file is missing, or is " (null)"
	return err != nil || !bytes.ContainsAny(list, "0123456789")
}

// note adds a reading of a thread's CPU time to the account. A thread that has moved since its last reading becomes
// hot.
func (l *watchList) note(th *watched, stat procfs.Schedstat) {
	q := &l.quiet
	q.reads++
	known := th.readAs > 0
	th.readAs = q.reads
	if stat == th.read {
		return
	}
	q.sum += int64(stat.Ran - th.read.Ran)
	th.read, th.movedAt = stat, q.at
	if known && !th.hot {
		th.hot = true
		q.hot = append(q.hot, th)
	}
}

func (q *quiet) removeEnded(th *watched) {
	q.sum -= int64(th.read.Ran)
	q.left, q.other, q.now = unknown, unknown, false
}

// dropIdle drops hot threads that have not moved for long or have ended.
func (q *quiet) dropIdle() {
	q.hot = slices.DeleteFunc(q.hot, func(th *watched) bool {
		th.hot = th.tid != 0 && q.at-th.movedAt < coolAfter
		return !th.hot
	})
}

// findQuiet finds out whether all threads but the hot ones have not moved, if that costs less than reading each of
// them.
func (l *watchList) findQuiet(now int64, many int) {
	q := &l.quiet
	q.now, q.at = false, now
	if l.noStats || q.skips || !q.ticks || 2*(len(q.hot)+len(l.byTID)/clockWorth) > many {
		return
	}
	if q.vain++; q.vain > vainMost && q.vain%seldomEach != 0 {
		return
	}
	for range 2 { // a running thread may be charged between its own reading and that of the clock
		for _, th := range q.hot {
			if th.tid == 0 {
				continue
			}
			if _, ok := l.readCharged(th); !ok {
				l.forget(th)
			}
		}
		if unix.ClockGettime(q.clock, &l.ts) != nil {
			return
		}
		if q.now = l.isLeftByEnded(l.ts.Nano() - q.sum); q.now {
			q.vain = 0
			return
		}
	}
}

// isLeftByEnded reports whether a difference is the time of ended threads.
func (l *watchList) isLeftByEnded(more int64) bool {
	q := &l.quiet
	switch {
	case more == q.left:
	case more != q.other:
		q.other, q.since = more, q.reads
		return false
	case !l.allReadSince(q.since):
		return false
	}
	q.left = more
	return true
}

func (l *watchList) allReadSince(reads uint64) bool {
	for _, th := range l.byTID {
		if th.readAs <= reads {
			return false
		}
	}
	return true
}

// charged returns what the kernel has charged a thread. If the thread is known not to have moved, charged returns the
// last reading. False: the thread has ended.
func (l *watchList) charged(th *watched) (procfs.Schedstat, bool) {
	if l.quiet.now && !th.hot && th.readAs > 0 {
		return th.read, true
	}
	return l.readCharged(th)
}
