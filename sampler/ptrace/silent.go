//go:build linux

package ptrace

import (
	"errors"
	"syscall"
	"time"
)

// Threads whose memory was not read in time. goprof releases such a thread when the time is over, and leaves it alone
// until the read has returned. A read that sleeps in the kernel waits for memory that does not answer. Then the thread
// is Silent. goprof leaves it alone for longer if this has happened too often in the last minute (chances.go). Any
// other read is late because the Runner has no CPU, or because a thread of the target that holds the lock of the
// address space has no CPU. Such a look is ReadLate.

// MostSilent bounds the reads that were given up and have not returned, because each keeps an OS thread. At that number
// goprof reads nothing any more.
const MostSilent = 8

// ErrSilent ends a run.
var ErrSilent = errors.New("ptrace: the memory of too many threads does not answer")

// silentThread is a thread whose read was given up.
type silentThread struct {
	born    uint64 // when the thread began: its number may pass to another thread
	chances Chances
	reader  *reader // the reader whose read has not returned; nil: it has
	asleep  bool    // the read was seen asleep
	judged  int64   // when the read was last seen not asleep
}

// Silent returns the threads whose reads were given up while waiting in the kernel, in order of their numbers.
func (t *Tracer) Silent() []int { return t.silentIDs }

// leavesAlone returns Silent or ReadLate if goprof must not look at tid, otherwise Taken.
func (t *Tracer) leavesAlone(tid int) Outcome {
	s := t.silentThreads[tid]
	if s == nil {
		if !t.openReader() && t.lateReads >= MostSilent {
			return t.whyNoReader()
		}
		return Taken
	}
	switch {
	case t.readIsUnderWay(tid):
		return t.whyLate(tid, s)
	case !s.chances.Spent(Monotonic()):
		return Taken
	case t.proc.Born(tid) != s.born:
		delete(t.silentThreads, tid)
		return Taken
	}
	return Silent
}

// readIsUnderWay reports whether a read of tid that was given up has not returned. Then no other read of tid may begin,
// because silentThread has room for one such Runner.
func (t *Tracer) readIsUnderWay(tid int) bool {
	s := t.silentThreads[tid]
	if s != nil && s.reader != nil && s.reader.runner.Returned() {
		t.takeBack(s)
	}
	return s != nil && s.reader != nil
}

// judgeAgain is the time between two judgments of a late read. A judgment reads files of /proc while a thread may be
// stopped.
const judgeAgain = int64(10 * time.Millisecond)

// whyLate returns Silent if the late read of tid sleeps, or has slept before. Otherwise it returns ReadLate.
func (t *Tracer) whyLate(tid int, s *silentThread) Outcome {
	now := Monotonic()
	switch {
	case s.asleep:
		return Silent
	case s.judged != 0 && now-s.judged < judgeAgain:
		return ReadLate
	case !s.reader.runner.Sleeps():
		s.judged = now
		return ReadLate
	}
	s.asleep = true
	s.chances.Lose(now)
	t.silentIDs = insertSorted(t.silentIDs, tid)
	return Silent
}

// whyNoReader returns Silent if all reads that were given up are asleep, otherwise ReadLate.
func (t *Tracer) whyNoReader() Outcome {
	for tid, s := range t.silentThreads {
		if s.reader != nil && t.whyLate(tid, s) == ReadLate {
			return ReadLate
		}
	}
	return Silent
}

// takeBack uses a returned Runner again, or ends it.
func (t *Tracer) takeBack(s *silentThread) {
	t.lateReads--
	if t.reader == nil {
		t.reader = s.reader
	} else {
		s.reader.runner.End()
	}
	s.reader, s.asleep, s.judged = nil, false, 0
}

// readsCameBack returns Taken if all reads of a look at tid have returned. Otherwise it releases all threads that have
// stopped meanwhile, notes tid, finds another Runner, and returns Silent or ReadLate.
func (t *Tracer) readsCameBack(tid int) Outcome {
	if !t.silent {
		return Taken
	}
	t.letGoStopped()
	t.silent = false
	s := t.silentThreads[tid]
	if s == nil {
		s = new(silentThread)
		if t.silentThreads == nil {
			t.silentThreads = map[int]*silentThread{}
		}
		t.silentThreads[tid] = s
	}
	if born := t.proc.Born(tid); born != s.born { // new, or another thread with the same number
		s.born, s.chances = born, Chances{}
	}
	s.reader, t.reader = t.reader, nil
	t.lateReads++
	o := t.whyLate(tid, s)
	t.openReader()
	return o
}

// openReader finds a Runner, unless too many reads have not returned.
func (t *Tracer) openReader() bool {
	if t.reader == nil && t.lateReads >= MostSilent {
		for _, s := range t.silentThreads {
			if s.reader != nil && s.reader.runner.Returned() {
				t.takeBack(s)
			}
		}
	}
	if t.reader == nil && t.lateReads < MostSilent {
		if d, err := newReader(t.StackLimit); err != nil {
			t.err = err
		} else {
			t.reader = d
		}
	}
	return t.reader != nil
}

// closeReaders ends the Runners that have returned.
func (t *Tracer) closeReaders() {
	if t.reader != nil && t.ownReads == nil {
		t.reader.runner.End()
	}
	t.reader = nil
	for _, s := range t.silentThreads {
		if s.reader != nil {
			s.reader.runner.End()
		}
	}
}

// letGoStopped releases all threads that have stopped by now, without a look: they have waited for a read.
func (t *Tracer) letGoStopped() {
	defer func(before syscall.Errno) { t.look.letGo = before }(t.look.letGo)
	for i := range t.pending {
		p := &t.pending[i]
		if p.letGo {
			continue
		}
		p.seenLate()
		now := Monotonic()
		setSignalMask(&t.mask, &t.oldMask)
		t.beginPause()
		s, sig := t.peek(p.tid)
		if s == running {
			p.missed = now
		} else if s == stopped {
			t.missed = p.missed
			t.release(p.tid, sig)
			p.letGo, p.killed = true, t.look.letGo != 0
		}
		t.endPause()
	}
}

// insertSorted adds a number to a sorted list. It returns a new list, because callers may hold the old one.
func insertSorted(list []int, n int) []int {
	i := 0
	for i < len(list) && list[i] < n {
		i++
	}
	if i < len(list) && list[i] == n {
		return list
	}
	longer := make([]int, 0, len(list)+1)
	return append(append(append(longer, list[:i]...), n), list[i:]...)
}

// ReadErr returns the error that ends a run because nothing can be read any more. It is nil while reads are possible,
// or only late because there is no CPU.
func (t *Tracer) ReadErr() error {
	switch {
	case t.reader != nil:
		return nil
	case t.lateReads < MostSilent:
		return t.err
	case t.whyNoReader() == Silent:
		return ErrSilent
	}
	return nil
}
