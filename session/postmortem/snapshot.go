package postmortem

import "goprof/process"

const (
	// bytesOfFrame, leastStack and mostStack bound the copies of stacks, as for a live process (session, ptrace).
	bytesOfFrame = 512
	leastStack   = 1 << 20
	mostStack    = 64 << 20
	// unknownStack is how much of a stack is copied if its base is not known.
	unknownStack = 64 << 10
)

// snapshot fills in what a look at the thread would have shown if it were alive.
func (j *JVM) snapshot(t *coreThread, depth int, snap *process.Snapshot) {
	snap.Reset()
	snap.TID, snap.Regs, snap.Syscall, snap.PACMask = t.TID, t.Regs, t.Syscall, t.PACMask
	snap.SP = t.Regs[j.Core.CPU().SP]
	limit := min(max(depth*bytesOfFrame, leastStack), mostStack)
	top, low := t.java.StackBase, uint64(0)
	if t.java.Addr != 0 && t.java.StackSize > 0 {
		low = top - t.java.StackSize
	}
	known := low != 0 && snap.SP >= low && snap.SP < top
	want := unknownStack
	if known {
		want = int(min(top-snap.SP, uint64(limit)))
	}
	snap.Stack = j.copy(snap.Stack, snap.SP, want)
	snap.Cut = len(snap.Stack) == want && (!known || snap.SP+uint64(want) < top)
	if low != 0 && !known {
		j.copyUnder(t, low, limit, snap)
	}
	if off, size := j.VM.Side(); t.java.Addr != 0 && size > 0 {
		snap.SideAddr = t.java.Addr + off
		snap.Side = j.copy(snap.Side, snap.SideAddr, size)
	}
	if j.conts == nil {
		return
	}
	j.conts.Read(snap, 0)
	// The heap is of the same time as the stack.
	snap.Continuation.Together = snap.Continuation.Settled
}

func (j *JVM) copy(into []byte, addr uint64, n int) []byte {
	if cap(into) < n {
		into = make([]byte, n)
	}
	return into[:j.Core.ReadUpTo(addr, into[:n])]
}

// copyUnder copies the thread's own stack if the thread is on a signal's stack. The copy begins at the lowest address
// of its own stack that a word of the signal's stack points to.
func (j *JVM) copyUnder(t *coreThread, low uint64, limit int, snap *process.Snapshot) {
	from := snap.LowestInto(low, t.java.StackBase)
	if size := int(min(t.java.StackBase-from, uint64(limit))); size > 0 {
		snap.Under, snap.UnderSP = j.copy(snap.Under, from, size), from
	}
}
