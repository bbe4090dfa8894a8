//go:build linux

package main

import (
	"sync"

	"goprof/output"
	"goprof/profile"
)

// hottestSoFar sums up the hottest methods of stacks that were written already and are no longer in memory.
type hottestSoFar struct {
	mu  sync.Mutex
	sum output.Hottest
}

// add sums up, while the recording goes on.
func (h *hottestSoFar) add(stacks *profile.Profile) {
	h.mu.Lock()
	go func() {
		defer h.mu.Unlock()
		h.sum.Add(output.TreeOf(stacks), &stacks.Meta)
	}()
}

// soFar is what was added so far. What is added later does not change it.
func (h *hottestSoFar) soFar() output.Hottest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sum
}

// describe fills in Hottest and States of all stacks, with those that are still in memory.
func (h *hottestSoFar) describe(s *profile.Summary, rest *profile.Profile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sum.Describe(s, output.TreeOf(rest))
}
