//go:build linux

package session

import "goprof/sampler/ptrace"

// bytesOfFrame is more stack than a frame needs on average: interpreted frames have some 100 bytes, compiled ones
// mostly less.
const bytesOfFrame = 512

// mostStack bounds the copy of one stack, however deep it may be: the thread is stopped while its stack is copied, some
// 0.1 ms for each MB.
const mostStack = 64 << 20

// stackLimit is how much of a stack is copied at most, so that so many frames can be found in it. A thread may have a
// stack of a GB (-Xss1g), but its copy is not larger unless a user asks for deeper stacks.
func stackLimit(depth int) int {
	if depth > mostStack/bytesOfFrame {
		return mostStack
	}
	return max(depth*bytesOfFrame, ptrace.DefaultStackLimit)
}

// mostQueued bounds the memory of all snapshots. They are used in turn, and each grows to the largest stack that it has
// held. There are leastQueued snapshots in any case.
const (
	mostQueued  = queueLength * ptrace.DefaultStackLimit
	leastQueued = 8
)

// queueFor returns how many snapshots may wait if each stack may have so many bytes.
func queueFor(limit int) int { return max(min(queueLength, mostQueued/limit), leastQueued) }
