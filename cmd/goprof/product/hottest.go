//go:build linux

package product

import (
	"sync"

	"goprof/output"
	"goprof/profile"
)

// Hottest sums the hottest methods of stacks that were written and are no longer in memory.
type Hottest struct {
	mu  sync.Mutex
	sum output.Hottest
}

// Add adds stacks during the recording.
func (h *Hottest) Add(stacks *profile.Profile) {
	h.mu.Lock()
	go func() {
		defer h.mu.Unlock()
		h.sum.Add(output.TreeOf(stacks), &stacks.Meta)
	}()
}

// SoFar returns a copy of the sums so far. Later samples do not change it.
func (h *Hottest) SoFar() output.Hottest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sum
}

// Describe sets Hottest and States for all stacks, including those in memory.
func (h *Hottest) Describe(s *profile.Summary, rest *profile.Profile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sum.Describe(s, output.TreeOf(rest))
}
