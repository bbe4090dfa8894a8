//go:build linux

package sampler

import (
	"goprof/process/procfs"
	"goprof/sampler/ptrace"
)

// How a visit finds the thread that it took the CPU from.
//
// The kernel notes the thread's number where that is permitted (switches.go). Elsewhere /proc tells the thread. The
// kernel notes when it last charged a thread (se.exec_start in /proc/PID/task/TID/sched, kernel/sched/debug.c). At a
// switch it reads the clock once. By that reading it charges the thread that goes, and dates the thread that comes
// (kernel/sched/core.c, __schedule). So the thread that we are looking for has the number there that the herald had
// when it came, to the nanosecond.
//
// Each visit reads the number of the threads that have run lately (hot). It reads the others where the process's clock
// says that one of them has run. Where there are too many others for that, only some visits read them, drawn by lot. A
// sample that such a search finds also counts for the visits that did not search.

// searchShare of a CPU is what searching threads that are not hot may cost: a tenth.
const searchShare = 10

// whoWas finds the thread that the herald took the CPU from, and how many visits the search for it stands for.
func (r *run) whoWas(now int64) (*thread, float64) {
	v := r.visits
	r.scan.now = now
	if _, tid, noted := v.noted(); noted {
		return r.scan.find(tid), 1
	}
	if when, ok := procfs.ExecStart(v.visit.Account); ok && ptrace.CurrentCPU() == v.cpus[v.at].number {
		return r.scan.wasCharged(when, v)
	}
	return nil, 0
}

// noted tells which thread the herald took the CPU from, and its process, where the kernel notes it. 0 is none. If
// somebody has had the CPU between the herald and us, the visit is made once more: we were not asleep, and to move us
// took too long.
func (v *visits) noted() (process, tid int, noted bool) {
	notes := v.cpus[v.at].notes
	if v.process = 0; notes == nil {
		return 0, 0, false
	}
	process, tid, ok := notes.before(v.visit.Head, v.visit.TID, v.tid)
	if !ok {
		v.heralds.Again(v.at)
		v.held--
		v.all--
		v.meeting--
	}
	v.process = process
	return process, tid, true
}

// find returns the thread of that number, if the process has one. It does not read what the thread was charged, because
// the thread waits for us: that is read after the look (account).
func (s *scan) find(tid int) *thread {
	th := s.byTID[tid]
	if th == nil && tid != 0 && s.proc.Owns(tid) {
		s.noteListed(tid)
		th = s.byTID[tid]
	}
	return th
}

// wasCharged finds the thread that was last charged at that moment of its CPU's clock, and how many visits that search
// stands for.
func (s *scan) wasCharged(at uint64, v *visits) (*thread, float64) {
	here := int16(v.cpus[v.at].number)
	for _, guessed := range [2]bool{true, false} {
		for _, th := range s.hot {
			if th.tid != 0 && (th.cpu == here) == guessed && s.isCharged(th, at) {
				return th, 1
			}
		}
	}
	return s.searchCold(at, v)
}

// isCharged reads a thread's account. If the account has changed, isCharged also reads when that was.
func (s *scan) isCharged(th *thread, at uint64) bool {
	stat, ok := s.charged(th)
	if !ok {
		s.forget(th)
		return false
	}
	if !s.updateAccount(th, stat) {
		return false
	}
	when, ok := procfs.ExecStart(s.readFile(th, fdSched))
	return ok && when == at
}

// searchCold asks the threads that are not hot. It does so if the lot says so, and if the process's clock says that it
// is worth it.
func (s *scan) searchCold(at uint64, v *visits) (found *thread, stands float64) {
	chance := v.chance
	if v.rng.Float64() >= chance {
		return nil, 0
	}
	began := s.ownCPUTime()
	s.bills.read()
	if s.unfound() > 0 && len(s.cold) > len(s.hot) {
		s.updateHot()
	}
	if s.unseen.owing = s.unfound(); s.unseen.owing > 0 {
		if found = s.askCold(at); found == nil && s.unseen.owing > 0 {
			found = s.askNew(at)
		}
	}
	v.setChance(float64(s.ownCPUTime()-began), s.now)
	return found, 1 / chance
}

// updateHot brings the hot threads up to date once more, after the clock was read. Then all is found that they used
// before the reading, and no other threads are asked for it.
func (s *scan) updateHot() {
	for _, th := range s.hot {
		if stat, ok := s.charged(th); ok && th.tid != 0 {
			s.updateAccount(th, stat)
		}
	}
}

// unfound is the CPU time that the process has used, and none of the threads that were asked.
func (s *scan) unfound() int64 { return s.bills.now - s.unseen.base - s.unseen.found }

// askCold asks the threads that are not hot. It does not stop where all time is found: while it asks, threads use more.
func (s *scan) askCold(at uint64) *thread {
	u := &s.unseen
	for range s.cold {
		th := s.takeCold()
		if th == nil {
			break
		}
		before := u.found
		charged := s.isCharged(th, at)
		if u.owing -= u.found - before; th.tid == 0 || th.hot {
			s.dropCold()
		}
		if charged {
			return th
		}
	}
	return nil
}

// askNew lists the threads: a thread has run that we have not met. Time that is still not found belongs to threads that
// have ended.
func (s *scan) askNew(at uint64) *thread {
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

// setChance sets the chance of a search, from the cost of the last searches and from how often we visit.
func (v *visits) setChance(cost float64, now int64) {
	const weight = 16
	v.cost += (cost - v.cost) / weight
	if v.last != 0 {
		// Searches are made at a share of the visits.
		v.between += (float64(now-v.last)*v.chance - v.between) / weight
		v.chance = min(max(v.between/searchShare/max(v.cost, 1), 0.01), 1)
	}
	v.last = now
}
