//go:build linux

package process

import (
	"runtime"
	"sync/atomic"
)

// calls counts the system calls that read the target's memory. Such a call may never return (see package osthread).
// Then another goroutine gives up the process without waiting for the call. From then on each call fails at once. If
// the old call returns after all, its goroutine ends without using its data, which now belongs to the other goroutine.
type calls struct {
	under    atomic.Int64 // calls that have not returned; negative once the process is given up
	returned atomic.Uint64
}

const givenUp = -1 << 62

// begin reports whether a call may be made.
func (c *calls) begin() bool {
	if c.under.Add(1) > 0 {
		return true
	}
	c.under.Add(-1)
	return false
}

// end must be called after each call.
func (c *calls) end() {
	c.returned.Add(1)
	if c.under.Add(-1) < 0 {
		runtime.Goexit()
	}
}

// giveUp gives up the process. It returns false if no call is under way.
func (c *calls) giveUp() bool {
	for n := c.under.Load(); n > 0; n = c.under.Load() {
		if c.under.CompareAndSwap(n, n+givenUp) {
			return true
		}
	}
	return false
}

func (c *calls) areGivenUp() bool { return c.under.Load() < 0 }

// CallWatch detects calls that do not return.
type CallWatch struct {
	calls    *calls
	returned uint64
	seen     int
}

// WatchCalls begins to watch the calls of a process.
func (p *Process) WatchCalls() *CallWatch { return &CallWatch{calls: &p.calls} }

// Look must be called at regular intervals. It gives up the process and returns true if three things hold: calls have
// been under way for more than most Looks in a row, none has returned, and a thread of goprof sleeps in such a call.
// The goroutines of these calls are abandoned. They end when their calls return.
func (w *CallWatch) Look(most int) bool {
	returned := w.calls.returned.Load()
	if w.calls.under.Load() == 0 || returned != w.returned {
		w.returned, w.seen = returned, 0
		return false
	}
	if w.seen++; w.seen <= most {
		return false
	}
	switch WhyLate() {
	case NoCPU: // the calls will return
		return false
	case Locked: // they will return, unless the holder of the lock waits for something that does not answer
		return w.seen > mostPatience*most && w.calls.giveUp()
	}
	return w.calls.giveUp()
}

// GivenUp reports whether the process was given up. Then nothing can be read any more.
func (p *Process) GivenUp() bool { return p.calls.areGivenUp() }

// lock locks mu. If the process was given up, an abandoned goroutine may hold mu. Then lock returns false.
func (p *Process) lock() bool {
	if p.GivenUp() {
		return p.mu.TryLock()
	}
	p.mu.Lock()
	return true
}
