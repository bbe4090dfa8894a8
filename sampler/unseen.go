//go:build linux

package sampler

import (
	"time"

	"goprof/process/procfs"
)

// Whether any of the threads that are not read has run.
//
// The process's clock counts the CPU time of all its threads (kernel/sched/cputime.c, thread_group_cputime, adds up
// the very numbers that schedstat shows, and those of threads that have ended). What it counts more than our reads have
// found, threads used that were not read. While that is next to nothing, all that are cold have slept, and nobody
// need ask each of them. Otherwise they are asked in turn, all of them once, or until that time is found. What is
// not found then belongs to threads that have ended or that we have not met, and is written off.

const (
	// clockShare of a CPU is what reading the clock may cost: the kernel walks over all threads for it.
	clockShare = 50
	// unseenShare of an interval, or of what is one mostly, may be used by cold threads before they are asked.
	unseenShare = 8
	unseenMost  = int64(10 * time.Millisecond)
)

// unseen keeps that account.
type unseen struct {
	base   int64 // what the clock said at the beginning, and what is written off since
	found  int64 // by reads since then
	owing  int64 // the clock's excess when it was last compared, less what cold threads were found to have used since
	asking int   // so many cold threads are to be asked
	fresh  bool  // the clock was read in this tick
	strays bool  // something was written off: there may be threads that we have not met
	readAt int64
	cost   int64 // CPU time of reading it
}

// readClock reads the clock, at the beginning of a tick: what hot threads are charged after that is found in the
// same tick and makes the excess smaller than it is, never greater.
func (s *scan) readClock() {
	u := &s.unseen
	u.fresh = false
	if s.now-u.readAt < u.cost*clockShare {
		return
	}
	before := s.ownCPUTime()
	s.bills.read()
	u.readAt, u.fresh = s.now, true
	u.cost = s.ownCPUTime() - before
}

// decideAskingCold decides whether cold threads have to be asked, when all hot ones have been.
func (s *scan) decideAskingCold() {
	u := &s.unseen
	if !u.fresh || s.noStats { // clock ticks are too coarse for that
		return
	}
	u.fresh = false
	u.owing = s.bills.now - u.base - u.found
	if u.asking == 0 && u.owing > min(s.interval, unseenMost)/unseenShare {
		u.asking = len(s.cold)
	}
}

// noteAsked notes that a cold thread was asked and has used so much.
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

// updateAccount brings a thread's account up to date with what the kernel has charged it, and says whether that has
// changed.
func (s *scan) updateAccount(th *thread, stat procfs.Schedstat) (changed bool) {
	if stat == th.last {
		return false
	}
	if stat.Ran > th.last.Ran {
		used := int64(stat.Ran - th.last.Ran)
		th.credit = min(th.credit+used, max(maxCredit, 2*s.interval))
		s.unseen.found += used
		s.noteCharge(th, stat.Ran, used)
	}
	th.movedAt, th.last, th.hot = s.now, stat, true
	return true
}
