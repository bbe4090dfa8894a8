//go:build linux

package process

import (
	"runtime"
	"sync/atomic"
)

// calls counts the system calls that read the target's memory: each may never return (package osthread says why). Then
// other code gives the process up, and need not wait for the goroutine of the call. From then on each call fails at
// once,
// and the goroutine ends if its call returns after all. So the code that gave the process up may use the goroutine's
// data.
type calls struct {
	under    atomic.Int64 // calls that are under way; below 0 once the process is given up
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

// end comes after each call.
func (c *calls) end() {
	c.returned.Add(1)
	if c.under.Add(-1) < 0 {
		runtime.Goexit()
	}
}

// giveUp returns false if no call is under way.
func (c *calls) giveUp() bool {
	for n := c.under.Load(); n > 0; n = c.under.Load() {
		if c.under.CompareAndSwap(n, n+givenUp) {
			return true
		}
	}
	return false
}

func (c *calls) areGivenUp() bool { return c.under.Load() < 0 }

// CallWatch notices a call that does not return.
type CallWatch struct {
	calls    *calls
	returned uint64
	seen     int
}

// WatchCalls begins to watch the calls of a process.
func (p *Process) WatchCalls() *CallWatch { return &CallWatch{calls: &p.calls} }

// Look must be called at regular intervals. It gives the process up and returns true if calls have been under way for
// more
// than most Looks in a row, none has returned, and a thread of goprof sleeps in such a call. The goroutines of these
// calls
// are abandoned. They end when their calls return.
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
	case Locked: // they will, unless the holder of the lock waits for something that does not answer
		return w.seen > mostPatience*most && w.calls.giveUp()
	}
	return w.calls.giveUp()
}

// GivenUp reports whether the process was given up. Then nothing can be read any more.
func (p *Process) GivenUp() bool { return p.calls.areGivenUp() }

// lock locks mu. If the process was given up, an abandoned goroutine may hold mu: then lock returns false.
func (p *Process) lock() bool {
	if p.GivenUp() {
		return p.mu.TryLock()
	}
	p.mu.Lock()
	return true
}
