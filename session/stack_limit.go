//go:build linux

package session

import "goprof/sampler/ptrace"

// bytesOfFrame is more stack than an average frame needs: interpreted frames have some 100 bytes, compiled ones mostly
// less.
const bytesOfFrame = 512

// mostStack bounds the copy of one stack, however deep the stack is. The thread is stopped while its stack is copied,
// some 0.1 ms for each MB.
const mostStack = 64 << 20

// stackLimit returns how many bytes of a stack are copied at most, to find depth frames. A thread may have a stack of a
// GB (-Xss1g), but the copy is not larger unless a user asks for deeper stacks.
func stackLimit(depth int) int {
	if depth > mostStack/bytesOfFrame {
		return mostStack
	}
	return max(depth*bytesOfFrame, ptrace.DefaultStackLimit)
}

// mostQueued bounds the memory of all snapshots. Snapshots are reused, and each grows to the largest stack that it has
// held. But there are always leastQueued snapshots.
const (
	mostQueued  = queueLength * ptrace.DefaultStackLimit
	leastQueued = 8
)

// queueFor returns how many snapshots may wait if each stack may have limit bytes.
func queueFor(limit int) int { return max(min(queueLength, mostQueued/limit), leastQueued) }
