//go:build linux

package threads

import (
	"syscall"

	"goprof/sampler"
)

// The lists of a List: which threads there are, which are hot, and which have open files.

// list lists the threads if a listing is due, and sorts hot from cold threads.
func (s *List) list() {
	s.sortLists()
	count := s.Proc.Count()
	wait := max(s.upkeep.Relist, s.listCost*listIdle)
	// Threads have come or gone, or the last listing left out some living threads (see listNow).
	if count != s.counted || s.unseen.strays {
		wait = s.listCost * listShare
	}
	if s.Round > 0 && s.Now-s.listedAt < wait {
		return
	}
	s.listNow()
}

// listAgain lists the threads because an unknown thread has just used a CPU. It returns false if the budget does not
// permit a listing.
func (s *List) listAgain() bool {
	if s.Now-s.listedAt < s.listCost*listShare {
		return false
	}
	s.listNow()
	return true
}

// listNow lists the threads, and drops those that have ended.
func (s *List) listNow() {
	s.unseen.strays = false
	began := s.OwnCPUTime()
	s.Round++
	s.met, s.counted = s.met[:0], 0
	if s.Proc.Threads(s.seen) != nil {
		return
	}
	for _, th := range s.ByTID {
		if th.round == s.Round {
			continue
		}
		// While threads end, a listing may leave out living threads (fs/proc/base.c, next_tid).
		if _, ok := s.Charged(th); !ok {
			s.forget(th)
		}
	}
	s.listedAt = s.Now
	s.listCost = s.OwnCPUTime() - began
}

// noteListed handles a thread of a listing. A new thread is hot if it was born since the last listing, otherwise cold.
// A hot one gets credit for the CPU time that it has already used.
func (s *List) noteListed(tid int) {
	s.counted++
	if th := s.ByTID[tid]; th != nil {
		th.round = s.Round
		return
	}
	var th *Thread
	if n := len(s.spare); n > 0 {
		th, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		th = new(Thread)
	}
	// All threads of the first listing are read soon (unseen.go). Threads that are born later are probably at work.
	born := s.Round > 1
	*th = Thread{TID: tid, round: s.Round, fds: noFDs, CPU: -1, movedAt: s.Now, hot: born}
	stat, ok := s.Charged(th)
	if !ok {
		s.closeFiles(th)
		s.spare = append(s.spare, th)
		return
	}
	th.Last = stat
	s.ByTID[tid] = th
	s.met = append(s.met, th)
	if !born || int64(stat.Ran) > s.Now-s.listedAt+lateCharge { // older: earlier listings have left it out
		th.Billed, th.hot = stat.Ran, false
		th.Credit = s.randomPart()
		s.cold = append(s.cold, th)
		return
	}
	// All that the thread has run since the last listing must be sampled.
	th.Credit = min(int64(stat.Ran), s.Now-s.listedAt, maxCredit) + s.randomPart()
	s.unseen.found += int64(stat.Ran)
	s.noteCharge(th, stat.Ran, int64(stat.Ran))
	s.Hot = append(s.Hot, th)
}

// randomPart returns a random part of an interval, the credit with which a thread begins. So a thread that uses less
// than an interval in all its life is sampled, on average, in proportion to its CPU time.
func (s *List) randomPart() int64 { return s.rng.Int64N(s.Interval) }

// forget drops a thread that has ended. The thread leaves its list later.
func (s *List) forget(th *Thread) {
	if th.TID == 0 {
		return
	}
	s.closeFiles(th)
	s.Bills.end(th)
	delete(s.ByTID, th.TID)
	th.TID = 0
}

// sortLists makes hot threads cold that have been quiet for long, and drops those that have ended.
func (s *List) sortLists() {
	keep := s.Hot[:0]
	for _, th := range s.Hot {
		switch {
		case th.TID == 0:
			s.spare = append(s.spare, th)
		case s.isCold(th):
			th.hot = false
			s.cold = append(s.cold, th)
			if s.kept.isShort() {
				s.closeFiles(th) // there are few descriptors, and hot threads need them more
			}
		default:
			keep = append(keep, th)
		}
	}
	s.Hot = keep
}

// takeCold returns the next cold thread in turn. A thread that has ended or become hot leaves the list at its next
// turn, so the list is never searched.
func (s *List) takeCold() *Thread {
	for len(s.cold) > 0 {
		if s.nextCold >= len(s.cold) {
			s.nextCold = 0
		}
		th := s.cold[s.nextCold]
		if th.TID != 0 && !th.hot {
			s.nextCold++
			return th
		}
		if th.TID == 0 {
			s.spare = append(s.spare, th)
		} else {
			s.Hot = append(s.Hot, th)
		}
		last := len(s.cold) - 1
		s.cold[s.nextCold] = s.cold[last]
		s.cold = s.cold[:last]
	}
	return nil
}

// dropCold removes the thread that takeCold last returned from the cold threads, because it has ended or is hot now.
func (s *List) dropCold() {
	s.nextCold--
	th, last := s.cold[s.nextCold], len(s.cold)-1
	if th.TID == 0 {
		s.spare = append(s.spare, th)
	} else {
		s.Hot = append(s.Hot, th)
	}
	s.cold[s.nextCold] = s.cold[last]
	s.cold = s.cold[:last]
}

func (s *List) isCold(th *Thread) bool {
	quiet := s.Now - th.movedAt
	if th.Credit >= s.Interval {
		return quiet > owedFor
	}
	return quiet > s.upkeep.HotFor
}

// readFile reads one of a thread's files through a kept descriptor. If there are no descriptors left, it opens the file
// for this one read. The last quarter of the descriptors is for hot threads. nil: the thread has ended.
func (s *List) readFile(th *Thread, which int) []byte {
	return s.kept.Read(s.Proc, th.TID, fdNames[which], &th.fds[which], th.hot || !s.kept.isShort(), s.giveUp)
}

// giveUpFiles closes some kept descriptors.
func (s *List) giveUpFiles() {
	n := 0
	for _, th := range s.ByTID {
		s.closeFiles(th)
		if n++; n == ReservedFDs {
			return
		}
	}
}

func (s *List) closeFiles(th *Thread) {
	for i := range th.fds {
		s.kept.Close(&th.fds[i])
	}
}

// ReservedFDs is how many descriptors are left for the rest of goprof: ELF images, outputs, the runtime.
const ReservedFDs = 256

// manySamplers is how many samplers may run at a time if their intervals are governed (Config.Pace). They share the
// descriptors, so no sampler may use all of them.
const manySamplers = 256

// FilesFor returns how many descriptors the sampler of one process may keep.
func FilesFor(cfg *sampler.Config) int {
	if cfg.Pace != nil {
		return RaiseFileLimit() / manySamplers
	}
	return RaiseFileLimit()
}

// RaiseFileLimit raises the limit of open files as far as permitted, and returns how many descriptors samplers can
// keep.
func RaiseFileLimit() int {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) != nil {
		return 0
	}
	if lim.Cur < lim.Max {
		raised := syscall.Rlimit{Cur: lim.Max, Max: lim.Max}
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
			lim = raised
		}
	}
	return max(int(min(lim.Cur, 1<<20))-ReservedFDs, 0)
}

// GroupFiles returns how many descriptors one member may keep. The members of a group, a few hundred, share all
// descriptors.
func GroupFiles() int { return min(RaiseFileLimit()/manySamplers, 64) }
