//go:build linux

package sampler

import (
	"sync"
	"sync/atomic"

	"goprof/sampler/ptrace"
)

// hints is what Advise has told of threads and no engine has taken yet.
type hints struct {
	mu      sync.Mutex
	byTID   map[int]ptrace.Hint
	waiting atomic.Bool // there are some
}

// mostHints bounds the hints. mostTaken bounds how many hints are taken at a time: meanwhile nobody can advise, and a
// thread may stand still.
const (
	mostHints = 1 << 18
	mostTaken = 1 << 10
)

// Advise tells what is known of a thread, from any goroutine, also before Run. Until then 64 KB of a stack are copied.
// A look of Wall's that was made without the hint does not count again.
// Advise returns false when too many hints are waiting: try again later.
func (h *hints) Advise(tid int, hint ptrace.Hint) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.byTID) >= mostHints {
		return false
	}
	if h.byTID == nil {
		h.byTID = map[int]ptrace.Hint{}
	}
	h.byTID[tid] = hint
	h.waiting.Store(true)
	return true
}

// take calls known with each hint. A hint that known does not take is kept, unless all threads that there are have been
// met. take never waits, since a thread may stand still for us: while somebody advises, all hints stay for the next
// time.
func (h *hints) take(known func(tid int, hint ptrace.Hint) bool, allMet bool) {
	if !h.waiting.Load() || !h.mu.TryLock() {
		return
	}
	defer h.mu.Unlock()
	n := 0
	for tid, hint := range h.byTID {
		if n++; n > mostTaken {
			break
		}
		if known(tid, hint) || allMet {
			delete(h.byTID, tid)
		}
	}
	h.waiting.Store(len(h.byTID) > 0)
}

// knownHints are the hints of all threads, for engines that keep no list of threads.
type knownHints map[int]ptrace.Hint

// mostKnown bounds the hints that are kept: threads come and go.
const mostKnown = 1 << 17

// takeFrom takes what Advise has told. It reports whether a thread is to be read soon.
func (k knownHints) takeFrom(h *hints) (soon bool) {
	h.take(func(tid int, hint ptrace.Hint) bool {
		if len(k) >= mostKnown {
			clear(k)
		}
		k[tid] = hint
		soon = soon || hint.Soon
		return true
	}, true)
	return soon
}
