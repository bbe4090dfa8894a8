//go:build linux

package sampler

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Which threads have not moved, without asking each.
//
// The process's clock adds up the very numbers that the threads' schedstat shows, as they stand, and what threads that have ended
// had used (kernel/sched/cputime.c, thread_group_cputime, read_sum_exec_runtime). What it says more than the sum of what was
// read is therefore what ended threads have left, and what living ones have used since they were read. The former does not change while
// none ends. So if the difference is that and not a nanosecond more, nobody has run since: all that were not read stand where they stood.
// The clock costs the kernel a walk over its threads, a fifteenth of reading a file of each.
//
// What ended threads have left is not to be had, but is the least difference that there is. It is believed when every thread has been read
// since that was seen first: a thread that had run before without being read would have made it smaller.

// quiet is that account for a watchList.
type quiet struct {
	clock int32
	sum   int64 // of what was read of all threads
	left  int64 // the least difference since the last thread ended; -1: unknown
	epoch uint32
	read  int  // so many threads were read in this epoch
	now   bool // nobody but the hot threads has moved since it was read
	skips bool // there are threads that are not to be looked at: to read those costs more than this saves
	at    int64
	hot   []*watched // those that have moved lately: they are read before the clock is
}

const (
	// clockWorth is how many threads the clock adds up while one file is read, at least.
	clockWorth = 16
	// coolAfter is how long after it has moved a thread is hot.
	coolAfter = int64(time.Second)
	// mostSlots is how many comparisons there are in a round.
	mostSlots = 4
)

// learn begins anew: something has ended, or the difference is smaller than was thought to be possible.
func (q *quiet) learn(left int64) {
	q.left, q.read, q.now = left, 0, false
	q.epoch++
}

// knows reports whether left is believed.
func (l *watchList) knows() bool { return l.quiet.left >= 0 && l.quiet.read == len(l.byTID) }

// note keeps what was read of a thread.
func (l *watchList) note(th *watched, stat schedstat) {
	q := &l.quiet
	known := th.epoch > 0
	if th.epoch != q.epoch {
		th.epoch = q.epoch
		q.read++
	}
	if stat == th.read {
		return
	}
	q.sum += int64(stat.ran - th.read.ran)
	th.read, th.movedAt = stat, q.at
	if known && !th.hot {
		th.hot = true
		q.hot = append(q.hot, th)
	}
}

// drop takes a thread that has ended out of the account.
func (q *quiet) drop(th *watched) {
	q.sum -= int64(th.read.ran)
	q.learn(-1)
}

// cool drops hot threads that have not moved for long, or have ended.
func (q *quiet) cool() {
	q.hot = slices.DeleteFunc(q.hot, func(th *watched) bool {
		th.hot = th.tid != 0 && q.at-th.movedAt < coolAfter
		return !th.hot
	})
}

// compare finds out whether all threads but the hot ones stand still, if that is cheaper than to ask so many of them.
func (l *watchList) compare(now int64, many int) {
	q := &l.quiet
	q.now, q.at = false, now
	if l.noStats || q.skips || 2*(len(q.hot)+len(l.byTID)/clockWorth) > many {
		return
	}
	for range 2 { // a thread that runs may be charged between its reading and the clock's
		for _, th := range q.hot {
			if th.tid == 0 {
				continue
			}
			if _, ok := l.ask(th); !ok {
				l.forget(th)
			}
		}
		if unix.ClockGettime(q.clock, &l.ts) != nil {
			return
		}
		more := l.ts.Nano() - q.sum
		if q.left < 0 || more < q.left {
			q.learn(more)
		}
		if more == q.left {
			q.now = l.knows()
			return
		}
	}
}

// charged is what the kernel has charged a thread: what was read of it, if it has not moved since. False: it has ended.
func (l *watchList) charged(th *watched) (schedstat, bool) {
	if l.quiet.now && !th.hot {
		return th.read, true
	}
	return l.ask(th)
}
