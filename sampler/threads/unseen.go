//go:build linux

package threads

import (
	"time"

	"goprof/process/procfs"
)

// How goprof notices that a thread has run whose file it did not read.
//
// The process's clock counts the CPU time of all its threads (kernel/sched/cputime.c, thread_group_cputime, adds up the
// very numbers that schedstat shows, and those of threads that have ended). If the clock counts more than goprof's
// reads have found, threads that were not read have used that excess. If the excess is nearly 0, all cold threads
// (those that have not run lately) have slept, and need not be read. Otherwise goprof reads the cold threads in turn,
// all of them once, or until the excess is found. Time that is not found belongs to threads that have ended or are not
// in the list yet. It is not looked for again.

const (
	// clockShare of a CPU is what reading the clock may cost: the kernel walks over all threads for it.
	clockShare = 50
	// Cold threads may use 1/unseenShare of an interval, or of what is mostly one, before they are read.
	unseenShare = 8
	unseenMost  = int64(10 * time.Millisecond)
)

// unseen keeps this account.
type unseen struct {
	base   int64 // what the clock said at the beginning, and what is written off since
	found  int64 // CPU time that reads since then have found
	owing  int64 // the clock's excess when it was last compared, less what cold threads were found to have used since
	asking int   // how many cold threads are still to be asked
	fresh  bool  // the clock was read in this tick
	strays bool  // something was written off: there may be threads that are not in the list
	readAt int64
	cost   int64 // CPU time of reading the clock
}

// readClock reads the clock, at the beginning of a tick. CPU time that hot threads are charged later in the same tick
// is found, too. It makes the excess look smaller than it is, never greater.
func (s *List) readClock() {
	u := &s.unseen
	u.fresh = false
	if s.Now-u.readAt < u.cost*clockShare {
		return
	}
	before := s.OwnCPUTime()
	s.Bills.read()
	u.readAt, u.fresh = s.Now, true
	u.cost = s.OwnCPUTime() - before
}

// decideAskingCold decides whether cold threads have to be asked, when all hot ones have been.
func (s *List) decideAskingCold() {
	u := &s.unseen
	if !u.fresh || s.noStats { // clock ticks are too coarse for this comparison
		return
	}
	u.fresh = false
	u.owing = s.Bills.Now - u.base - u.found
	if u.asking == 0 && u.owing > min(s.Interval, unseenMost)/unseenShare {
		u.asking = len(s.cold)
	}
}

// noteAsked notes that a cold thread was asked, and the time that it has used.
func (u *unseen) noteAsked(used int64) {
	u.owing -= used
	if u.asking == 0 {
		return
	}
	if u.asking--; u.owing <= 0 {
		u.asking = 0
	} else if u.asking == 0 {
		u.base += u.owing
		u.owing, u.strays = 0, true
	}
}

// UpdateAccount adds to a thread's account what the kernel has charged it since the last reading. It reports whether
// the charge has changed.
func (s *List) UpdateAccount(th *Thread, stat procfs.Schedstat) (changed bool) {
	if stat == th.Last {
		return false
	}
	if stat.Ran > th.Last.Ran {
		used := int64(stat.Ran - th.Last.Ran)
		th.Credit = min(th.Credit+used, max(maxCredit, 2*s.Interval))
		s.unseen.found += used
		s.noteCharge(th, stat.Ran, used)
	}
	th.movedAt, th.Last, th.hot = s.Now, stat, true
	return true
}
