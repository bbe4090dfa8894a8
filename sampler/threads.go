//go:build linux

package sampler

import "syscall"

// This file keeps the scan's lists: which threads there are, which are hot, and which have open files.

// list looks for new threads when it is time to, and sorts hot from cold.
func (s *scan) list() {
	s.sortLists()
	count := s.proc.Count()
	wait := max(s.relist, s.listCost*listIdle)
	if count != s.counted || s.unseen.strays {
		wait = s.listCost * listShare
	}
	if s.round > 0 && s.now-s.listedAt < wait {
		return
	}
	s.counted = count
	s.listNow()
}

// listAgain lists the threads if that is not too dear. It is called because an unknown thread was at work just now.
func (s *scan) listAgain() bool {
	if s.now-s.listedAt < s.listCost*listShare {
		return false
	}
	s.listNow()
	return true
}

func (s *scan) listNow() {
	s.unseen.strays = false
	began := s.ownCPUTime()
	s.round++
	s.met = s.met[:0]
	if s.proc.Threads(s.dirents, s.seen) != nil {
		return
	}
	for _, th := range s.byTID {
		if th.round == s.round {
			continue
		}
		// While threads end, a listing may leave out some that live (fs/proc/base.c, next_tid).
		if _, ok := s.charged(th); !ok {
			s.forget(th)
		}
	}
	s.listedAt = s.now
	s.listCost = s.ownCPUTime() - began
}

// noteListed notes that the listing has seen tid.
func (s *scan) noteListed(tid int) {
	if th := s.byTID[tid]; th != nil {
		th.round = s.round
		return
	}
	var th *thread
	if n := len(s.spare); n > 0 {
		th, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		th = new(thread)
	}
	// The threads of the first listing are all asked soon (unseen.go). Threads that are born later are probably at
	// work.
	born := s.round > 1
	*th = thread{tid: tid, round: s.round, fds: noFDs, cpu: -1, movedAt: s.now, hot: born}
	stat, ok := s.charged(th)
	if !ok {
		s.closeFiles(th)
		s.spare = append(s.spare, th)
		return
	}
	th.last = stat
	s.byTID[tid] = th
	s.met = append(s.met, th)
	if !born || int64(stat.Ran) > s.now-s.listedAt+lateCharge { // it is older: listings have left it out by now
		th.billed, th.hot = stat.Ran, false
		th.credit = s.randomPart()
		s.cold = append(s.cold, th)
		return
	}
	// All that the thread has run since the last listing is ours to sample.
	th.credit = min(int64(stat.Ran), s.now-s.listedAt, maxCredit) + s.randomPart()
	s.unseen.found += int64(stat.Ran)
	s.noteCharge(th, stat.Ran, int64(stat.Ran))
	s.hot = append(s.hot, th)
}

// randomPart is some part of an interval. A thread begins with this credit. So a thread that uses less than an interval
// in all its life is sampled, on the average, as often as it uses CPU time.
func (s *scan) randomPart() int64 { return s.rng.Int64N(s.interval) }

// forget drops a thread that has ended. The thread leaves its list later.
func (s *scan) forget(th *thread) {
	if th.tid == 0 {
		return
	}
	s.closeFiles(th)
	s.bills.end(th)
	delete(s.byTID, th.tid)
	th.tid = 0
}

// sortLists moves hot threads that have been quiet for long to the cold ones, and drops
// those that have ended.
func (s *scan) sortLists() {
	keep := s.hot[:0]
	for _, th := range s.hot {
		switch {
		case th.tid == 0:
			s.spare = append(s.spare, th)
		case s.isCold(th):
			th.hot = false
			s.cold = append(s.cold, th)
			if s.kept.isShort() {
				s.closeFiles(th) // there are few descriptors: hot threads need them more
			}
		default:
			keep = append(keep, th)
		}
	}
	s.hot = keep
}

// takeCold returns the next cold thread in turn. Threads that have ended or have become hot leave the list when their
// turn comes, so the list never has to be searched.
func (s *scan) takeCold() *thread {
	for len(s.cold) > 0 {
		if s.nextCold >= len(s.cold) {
			s.nextCold = 0
		}
		th := s.cold[s.nextCold]
		if th.tid != 0 && !th.hot {
			s.nextCold++
			return th
		}
		if th.tid == 0 {
			s.spare = append(s.spare, th)
		} else {
			s.hot = append(s.hot, th)
		}
		last := len(s.cold) - 1
		s.cold[s.nextCold] = s.cold[last]
		s.cold = s.cold[:last]
	}
	return nil
}

// dropCold takes the thread that takeCold returned last off the list of cold threads: it has ended, or is hot now.
func (s *scan) dropCold() {
	s.nextCold--
	th, last := s.cold[s.nextCold], len(s.cold)-1
	if th.tid == 0 {
		s.spare = append(s.spare, th)
	} else {
		s.hot = append(s.hot, th)
	}
	s.cold[s.nextCold] = s.cold[last]
	s.cold = s.cold[:last]
}

func (s *scan) isCold(th *thread) bool {
	quiet := s.now - th.movedAt
	if th.credit >= s.interval {
		return quiet > owedFor
	}
	return quiet > s.hotFor
}

// readFile reads one of a thread's files through a kept descriptor. If there are no descriptors left, it opens the file
// for this one read. The last quarter of the descriptors is for hot threads. nil: the thread has ended.
func (s *scan) readFile(th *thread, which int) []byte {
	return s.kept.read(s.proc, th.tid, fdNames[which], &th.fds[which], th.hot || !s.kept.isShort(), s.giveUp)
}

// giveUpFiles closes some kept descriptors.
func (s *scan) giveUpFiles() {
	n := 0
	for _, th := range s.byTID {
		s.closeFiles(th)
		if n++; n == reservedFDs {
			return
		}
	}
}

func (s *scan) closeFiles(th *thread) {
	for i := range th.fds {
		s.kept.close(&th.fds[i])
	}
}

// reservedFDs are left to the rest of goprof: ELF images, outputs, the runtime.
const reservedFDs = 256

// manySamplers is how many samplers may run at a time where the interval of each is governed (Config.Pace). They share
// the descriptors that there are, and no sampler may use up all of them.
const manySamplers = 256

// filesFor is how many descriptors the sampler of one process may keep.
func filesFor(cfg *Config) int {
	if cfg.Pace != nil {
		return raiseFileLimit() / manySamplers
	}
	return raiseFileLimit()
}

// raiseFileLimit raises the limit as far as we may and says how many a scan can keep.
func raiseFileLimit() int {
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
	return max(int(min(lim.Cur, 1<<20))-reservedFDs, 0)
}
