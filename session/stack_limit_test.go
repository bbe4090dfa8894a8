//go:build linux

package session

import (
	"testing"

	"goprof/sampler/ptrace"
)

// TestDeepStacksLeaveMemory: however deep stacks may be, all snapshots together need little memory.
func TestDeepStacksLeaveMemory(t *testing.T) {
	if n := queueFor(stackLimit(0)); n != queueLength {
		t.Errorf("%d snapshots of stacks as deep as others", n)
	}
	for _, depth := range []int{1, 2048, 10_000, 100_000, 1 << 20, 1 << 62} {
		limit := stackLimit(depth)
		n := queueFor(limit)
		if limit < ptrace.DefaultStackLimit || limit > mostStack || n < leastQueued || n*limit > 2*mostQueued {
			t.Errorf("depth %d: %d snapshots of %d bytes", depth, n, limit)
		}
	}
}
