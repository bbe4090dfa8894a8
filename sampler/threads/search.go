//go:build linux

package threads

import (
	"goprof/process/procfs"
)

// Finding the thread that lost its CPU to a visit.
//
// If permitted, the kernel notes the thread's number (visit/switches.go). Otherwise goprof reads in /proc when the
// kernel last charged each thread (se.exec_start in /proc/PID/task/TID/sched, kernel/sched/debug.c). At a switch of
// threads the kernel reads the clock once, for both the thread that leaves the CPU and the thread that gets it
// (kernel/sched/core.c, __schedule). So the wanted thread's exec_start equals the moment at which the preempter got the
// CPU, to the nanosecond.
//
// Each visit reads exec_start of the hot threads, which have run lately. It reads the other threads if the process's
// clock shows that one of them has run. If there are too many others, only some visits, drawn by lot, read them. A
// sample that such a search finds also counts for the visits without a search.

// searchShare: searching cold threads may cost 1/searchShare of a CPU.
const searchShare = 10

// search decides how often cold threads are searched.
type search struct {
	chance  float64 // the probability that a visit searches
	cost    float64 // ns of such a search, averaged
	between float64 // ns between two visits, averaged
	last    int64
}

// Find returns the thread with this number, nil if the process has none. It does not read the thread's charge: the
// thread is held, so the charge is read after the look (account).
func (s *List) Find(tid int) *Thread {
	th := s.ByTID[tid]
	if th == nil && tid != 0 && s.Proc.Owns(tid) {
		s.noteListed(tid)
		th = s.ByTID[tid]
	}
	return th
}

// WasCharged returns the thread that was last charged at the moment at, on that CPU's clock, and how many visits this
// search stands for.
func (s *List) WasCharged(at uint64, cpu int) (*Thread, float64) {
	here := int16(cpu)
	for _, guessed := range [2]bool{true, false} {
		for _, th := range s.Hot {
			if th.TID != 0 && (th.CPU == here) == guessed && s.isCharged(th, at) {
				return th, 1
			}
		}
	}
	return s.searchCold(at)
}

// isCharged reads a thread's charge. If the charge has changed, isCharged also reads when, and reports whether that was
// at the moment at.
func (s *List) isCharged(th *Thread, at uint64) bool {
	stat, ok := s.Charged(th)
	if !ok {
		s.forget(th)
		return false
	}
	if !s.UpdateAccount(th, stat) {
		return false
	}
	when, ok := procfs.ExecStart(s.readFile(th, fdSched))
	return ok && when == at
}

// searchCold reads the files of cold threads, if the lot falls on this visit and the process's clock shows that one of
// them has run.
func (s *List) searchCold(at uint64) (found *Thread, stands float64) {
	chance := s.search.chance
	if s.rng.Float64() >= chance {
		return nil, 0
	}
	began := s.OwnCPUTime()
	s.Bills.read()
	if s.unfound() > 0 && len(s.cold) > len(s.Hot) {
		s.updateHot()
	}
	if s.unseen.owing = s.unfound(); s.unseen.owing > 0 {
		if found = s.askCold(at); found == nil && s.unseen.owing > 0 {
			found = s.askNew(at)
		}
	}
	s.search.setChance(float64(s.OwnCPUTime()-began), s.Now)
	return found, 1 / chance
}

// updateHot updates the hot threads once more, after the clock was read. Then all the time that they used before that
// reading is found, and no cold threads are read for it.
func (s *List) updateHot() {
	for _, th := range s.Hot {
		if stat, ok := s.Charged(th); ok && th.TID != 0 {
			s.UpdateAccount(th, stat)
		}
	}
}

// unfound returns the CPU time of the process that no reading of a thread has shown.
func (s *List) unfound() int64 { return s.Bills.Now - s.unseen.base - s.unseen.found }

// askCold returns the cold thread that was charged at the moment at. It reads the threads' files. It does not stop when
// all time is found, because threads use more time while it reads.
func (s *List) askCold(at uint64) *Thread {
	u := &s.unseen
	for range s.cold {
		th := s.takeCold()
		if th == nil {
			break
		}
		before := u.found
		charged := s.isCharged(th, at)
		if u.owing -= u.found - before; th.TID == 0 || th.hot {
			s.dropCold()
		}
		if charged {
			return th
		}
	}
	return nil
}

// askNew lists the threads, because a thread that is not in the list has run. It returns the new thread that was
// charged at the moment at. Time that is still not found belongs to threads that have ended.
func (s *List) askNew(at uint64) *Thread {
	u := &s.unseen
	if !s.listAgain() {
		u.strays = true
		return nil
	}
	if u.owing = s.unfound(); u.owing > 0 {
		u.base += u.owing
		u.owing = 0
	}
	for _, th := range s.met {
		if when, ok := procfs.ExecStart(s.readFile(th, fdSched)); ok && when == at {
			return th
		}
	}
	return nil
}

// setChance sets the chance of a search, by the cost of the last searches and the time between two visits.
func (f *search) setChance(cost float64, now int64) {
	const weight = 16
	f.cost += (cost - f.cost) / weight
	if f.last != 0 {
		// Only a share of the visits search.
		f.between += (float64(now-f.last)*f.chance - f.between) / weight
		f.chance = min(max(f.between/searchShare/max(f.cost, 1), 0.01), 1)
	}
	f.last = now
}
