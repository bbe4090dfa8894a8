//go:build linux

package ptrace

import (
	"errors"
	"syscall"
)

// What becomes of a thread whose memory did not answer. The thread was let go when the time was over. goprof leaves the
// thread alone until the read has come back, and longer if that has happened too often in the last minute (chances.go).

// MostSilent bounds the reads that were given up and are still under way: each keeps an OS thread. Once there are so
// many, nothing is read any more.
const MostSilent = 8

// ErrSilent ends a run.
var ErrSilent = errors.New("ptrace: the memory of too many threads does not answer")

// silentThread is a thread of which a read was given up.
type silentThread struct {
	born    uint64 // the thread's start: its number may go to another thread
	chances Chances
	reader  *reader // of the read that is under way; nil: the read has come back
}

// Silent lists threads, in order of their numbers. Of each, a read was given up that waited in the kernel.
func (t *Tracer) Silent() []int { return t.silentIDs }

// leavesAlone reports whether tid is not to be looked at.
func (t *Tracer) leavesAlone(tid int) bool {
	s := t.silentThreads[tid]
	if s == nil {
		return t.reader == nil && t.lateReads >= MostSilent
	}
	if s.reader != nil && s.reader.runner.Returned() {
		t.takeBack(s)
	}
	if s.reader != nil {
		return true
	}
	if !s.chances.Spent(Monotonic()) {
		return false
	}
	if t.proc.Born(tid) != s.born {
		delete(t.silentThreads, tid)
		return false
	}
	return true
}

// takeBack takes a Runner back into service, or ends it.
func (t *Tracer) takeBack(s *silentThread) {
	t.lateReads--
	if t.reader == nil {
		t.reader = s.reader
	} else {
		s.reader.runner.End()
	}
	s.reader = nil
}

// readsCameBack reports whether all reads of a look at tid have come back. If not, it lets all other threads go that
// have stopped meanwhile, notes tid, and finds another Runner.
func (t *Tracer) readsCameBack(tid int) bool {
	if !t.silent {
		return true
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
	if born := t.proc.Born(tid); born != s.born { // new, or another thread that has its number now
		s.born, s.chances = born, Chances{}
	}
	if t.reader.runner.Sleeps() { // otherwise the read is late because the Runner had no CPU
		s.chances.Lose(Monotonic())
		t.silentIDs = insertSorted(t.silentIDs, tid)
	}
	s.reader, t.reader = t.reader, nil
	t.lateReads++
	t.openReader()
	return false
}

// openReader finds a Runner, unless too many have not come back.
func (t *Tracer) openReader() bool {
	if t.reader == nil && t.lateReads < MostSilent {
		if d, err := newReader(t.StackLimit); err != nil {
			t.err = err
		} else {
			t.reader = d
		}
	}
	return t.reader != nil
}

// closeReaders ends the Runners that have come back.
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

// letGoStopped lets all threads go that have stopped by now, without a look: they have stood still while a read was
// waited for.
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

// insertSorted adds a number to a sorted list. It returns a new list: others may hold the old one.
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

// ReadErr says why nothing can be read any more. Such an error ends a run. It is nil as long as reads are possible.
func (t *Tracer) ReadErr() error {
	if t.reader != nil {
		return nil
	}
	if t.lateReads >= MostSilent {
		return ErrSilent
	}
	return t.err
}
