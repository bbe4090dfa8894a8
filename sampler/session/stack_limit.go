//go:build linux

package session

import "goprof/sampler/ptrace"

// Bytes of stack that a frame takes, generously: interpreted ones have some 100, compiled ones mostly less.
const bytesOfFrame = 512

// mostStack bounds the copy of one stack, however deep it may be: a thread stands still while
// it is taken, some 0.1 ms for each MB.
const mostStack = 64 << 20

// stackLimit is how much of a stack is copied at most so that so many frames can be found in it. A thread may
// have a stack of a GB (-Xss1g); who does not ask for deeper stacks than others copies no more than others.
func stackLimit(depth int) int {
	if depth > mostStack/bytesOfFrame {
		return mostStack
	}
	return max(depth*bytesOfFrame, ptrace.DefaultStackLimit)
}

// mostQueued bounds the memory of all snapshots that go round: each grows to the largest stack that it has
// met, and they take turns. leastQueued are there in any case.
const (
	mostQueued  = queueLength * ptrace.DefaultStackLimit
	leastQueued = 8
)

// queueFor is how many snapshots may wait where each may have so large a stack.
func queueFor(limit int) int { return max(min(queueLength, mostQueued/limit), leastQueued) }
