package process

import (
	"encoding/binary"
	"slices"

	"goprof/arch"
)

// Snapshot is the state of the machine that one look at a thread took: all that the walker needs and that cannot be
// read later. Package sampler/look has what the sampler knows of the look itself.
type Snapshot struct {
	TID  int
	Regs arch.Regs
	// Unknown is the set (by bit) of Regs that could not be read. Recordings do not keep it.
	Unknown uint64
	Stack   []byte // copy of the stack from SP upward
	SP      uint64 // address of Stack[0]
	// Syscall is the system call that the thread was in, -1 if none.
	Syscall int64
	// Cut: the stack goes on above the copy (the copy reached its limit).
	Cut bool
	// Side is a second piece of memory copied in the same moment, at SideAddr: what
	// the walker asked for, such as the thread's frame anchor.
	Side     []byte
	SideAddr uint64
	// Under is a copy of the thread's own stack from UnderSP upward, if Stack is that of a signal's handler. Else it is
	// empty.
	Under   []byte
	UnderSP uint64
	// Followed is a copy of memory that a pointer in Side pointed at, made in the same moment. It is empty if the
	// pointer was nil, led nowhere, or could not be followed in that moment.
	Followed []byte
	// RunsOn says that the thread has run on since the look. Then memory that Side points at counts only if it is in
	// Followed. If RunsOn is false, the thread still stands where it was, or did so when the walk was recorded. Then
	// the memory itself may be read. Recorded walks (in tests) keep RunsOn only together with the bytes of Followed.
	RunsOn bool
	// Trail is what was copied in the same moment of what Trail leads to. Recordings do not keep it.
	Trail Pieces
	// Continuation is the part of the stack that lay in the Java heap; see there.
	Continuation Continuation
	// PACMask holds the address bits that carry pointer authentication (arm64).
	PACMask uint64
}

// Reset makes s a snapshot in which nothing is known yet. It keeps the memory for the next look.
func (s *Snapshot) Reset() {
	trail, continuation := s.Trail, s.Continuation
	trail.Reset()
	continuation.Reset()
	*s = Snapshot{
		Syscall:      -1,
		Stack:        s.Stack[:0],
		Side:         s.Side[:0],
		Under:        s.Under[:0],
		Followed:     s.Followed[:0],
		Trail:        trail,
		Continuation: continuation,
	}
}

// LowestInto returns the lowest address within other bounds that a word of Stack holds, high if none does. A thread
// whose Stack is a signal's uses its own stack from there upward.
func (s *Snapshot) LowestInto(low, high uint64) uint64 {
	for at := 0; at+8 <= len(s.Stack); at += 8 {
		if word := binary.LittleEndian.Uint64(s.Stack[at:]); word >= low && word < high {
			high = word &^ 7
		}
	}
	return high
}

// Clone returns a copy of s that shares no memory with it.
func (s *Snapshot) Clone() *Snapshot {
	c := *s
	c.Stack = slices.Clone(s.Stack)
	c.Side = slices.Clone(s.Side)
	c.Under = slices.Clone(s.Under)
	c.Followed = slices.Clone(s.Followed)
	c.Trail = s.Trail.clone()
	c.Continuation = s.Continuation.clone()
	return &c
}
