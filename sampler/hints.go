//go:build linux

package sampler

import (
	"sync"
	"sync/atomic"

	"goprof/sampler/ptrace"
)

// Hints is what Advise has told of threads and no engine has taken yet.
type Hints struct {
	mu      sync.Mutex
	byTID   map[int]ptrace.Hint
	Waiting atomic.Bool // there are some
}

// MostHints bounds the hints. mostTaken bounds how many hints are taken at a time: meanwhile Advise must wait, and a
// thread may stand still.
const (
	MostHints = 1 << 18
	mostTaken = 1 << 10
)

// Advise hands over what is known of a thread, from any goroutine, also before Run. Until then 64 KB of a stack are
// copied. If package wall looked at the thread without the hint, that look is not counted again at later visits. Advise
// returns false when too many hints are waiting: try again later.
func (h *Hints) Advise(tid int, hint ptrace.Hint) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.byTID) >= MostHints {
		return false
	}
	if h.byTID == nil {
		h.byTID = map[int]ptrace.Hint{}
	}
	h.byTID[tid] = hint
	h.Waiting.Store(true)
	return true
}

// Take calls known with each hint. If known returns false, the hint is kept, unless allMet says that all living threads
// have been met. Take never waits, because a thread may stand still meanwhile. If another goroutine is in Advise, all
// hints stay for the next Take.
func (h *Hints) Take(known func(tid int, hint ptrace.Hint) bool, allMet bool) {
	if !h.Waiting.Load() || !h.mu.TryLock() {
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
	h.Waiting.Store(len(h.byTID) > 0)
}

// KnownHints are the hints of all threads, for engines that keep no list of threads.
type KnownHints map[int]ptrace.Hint

// MostKnown bounds the hints that are kept: threads come and go.
const MostKnown = 1 << 17

// TakeFrom takes what Advise has told. It reports whether a thread is to be read soon.
func (k KnownHints) TakeFrom(h *Hints) (soon bool) {
	h.Take(func(tid int, hint ptrace.Hint) bool {
		if len(k) >= MostKnown {
			clear(k)
		}
		k[tid] = hint
		soon = soon || hint.Soon
		return true
	}, true)
	return soon
}
