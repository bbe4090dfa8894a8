//go:build linux

package threads

import (
	"time"

	"goprof/process/procfs"
)

// Noticing that a thread has run, without reading its file.
//
// The process's clock counts the CPU time of all its threads (kernel/sched/cputime.c, thread_group_cputime, adds up the
// numbers of schedstat, and those of ended threads). If the clock shows more than goprof has read, threads that were
// not read have used that excess. If the excess is nearly 0, all cold threads have slept, and need not be read.
// Otherwise goprof reads the cold threads in turn, all of them once, or until the excess is found. Time that is not
// found belongs to threads that have ended or are not in the list yet. goprof does not look for it again.

const (
	// clockShare: reading the clock may cost 1/clockShare of a CPU. The kernel walks over all threads for it.
	clockShare = 50
	// Cold threads are read when they have used 1/unseenShare of an interval, or of unseenMost if that is less.
	unseenShare = 8
	unseenMost  = int64(10 * time.Millisecond)
)

type unseen struct {
	base   int64 // the clock at the beginning, and all that was written off since
	found  int64 // CPU time that readings have found since the beginning
	owing  int64 // the clock's excess at the last comparison, less what readings of cold threads have found since
	asking int   // cold threads that are still to be read
	fresh  bool  // the clock was read in this tick
	strays bool  // time was written off: threads may be missing in the list
	readAt int64
	cost   int64 // CPU time of reading the clock
}

// readClock reads the clock, at the beginning of a tick. Readings of hot threads later in the same tick may find newer
// CPU time. This makes the excess look smaller than it is, never larger.
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

// decideAskingCold decides whether cold threads must be read, after all hot ones were read.
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

// noteAsked notes that a cold thread was read, and how much time it has used.
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
