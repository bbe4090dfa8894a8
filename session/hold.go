//go:build linux

package session

import (
	"time"

	"goprof/heap/heapdump"
	"goprof/process"
	"goprof/profile"
	"goprof/sampler/ptrace"
	"goprof/vmstructs"
)

// holdWait bounds how long threads may take to stop. Threads that have stopped already wait for the others.
const holdWait = 2 * time.Second

// otherStack is how much is copied of a stack that is not the thread's own, such as a signal stack.
const otherStack = 64 << 10

// Hold stops all threads of the JVM while f runs, but for no longer than most. threads calls its argument for each Java
// thread, for a heap dump. See ptrace.HoldAll.
func (s *Session) Hold(cancel <-chan struct{}, most time.Duration,
	f func(threads func(func(*heapdump.Thread)), cut <-chan struct{})) error {
	s.Walker.RawNames = true // the dump names methods as class files do
	s.Walker.Warm()
	return ptrace.HoldAll(s.Process.PID(), s.Process.CPU(), cancel, holdWait, most,
		func(held []ptrace.Held, cut <-chan struct{}) {
			f(func(each func(*heapdump.Thread)) { s.eachHeld(held, each) }, cut)
		})
}

// eachHeld calls each for the Java threads among the stopped threads.
func (s *Session) eachHeld(held []ptrace.Held, each func(*heapdump.Thread)) {
	java, err := s.VM.Threads()
	if err != nil {
		return
	}
	byTID := map[int]vmstructs.Thread{}
	for _, t := range java {
		byTID[t.NSTID] = t
	}
	conts := s.VM.NewContinuations()
	var snap process.Snapshot
	var stack profile.Stack
	for i := range held {
		tid, err := s.Process.NSTID(held[i].TID)
		t, known := byTID[tid]
		if err != nil || !known || tid == 0 {
			continue
		}
		s.copyHeld(&held[i], &t, &snap)
		if conts != nil {
			conts.Read(&snap, 0)
			snap.Continuation.Together = snap.Continuation.Settled // nothing moves
		}
		s.Walker.Walk(&snap, &stack)
		each(&heapdump.Thread{Java: t, Stack: &stack, Snap: &snap})
	}
}

// copyHeld makes a snapshot of a stopped thread. The copy reaches the stack's base, because each root counts.
func (s *Session) copyHeld(h *ptrace.Held, t *vmstructs.Thread, snap *process.Snapshot) {
	snap.Reset()
	snap.TID, snap.Regs, snap.Syscall, snap.PACMask = h.TID, h.Regs, h.Syscall, h.PACMask
	snap.SP = h.Regs[s.Process.CPU().SP]
	if low := t.StackBase - t.StackSize; snap.SP >= low && snap.SP < t.StackBase {
		snap.Stack = s.copyInto(snap.Stack, snap.SP, min(mostStack, t.StackBase-snap.SP))
		snap.Cut = snap.SP+uint64(len(snap.Stack)) < t.StackBase
	} else {
		snap.Stack = s.copyInto(snap.Stack, snap.SP, otherStack)
		snap.Cut = true
		if snap.UnderSP = snap.LowestInto(low, t.StackBase); snap.UnderSP < t.StackBase {
			snap.Under = s.copyInto(snap.Under, snap.UnderSP, min(mostStack, t.StackBase-snap.UnderSP))
		}
	}
	if off, size := s.VM.Side(); size > 0 {
		snap.SideAddr = t.Addr + off
		snap.Side = s.copyInto(snap.Side, snap.SideAddr, uint64(size))
	}
}

func (s *Session) copyInto(b []byte, addr, n uint64) []byte {
	if uint64(cap(b)) < n {
		b = make([]byte, n)
	}
	got, err := s.Process.ReadUpTo(addr, b[:n])
	if err != nil {
		got = 0
	}
	return b[:got]
}
