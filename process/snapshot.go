package process

import (
	"encoding/binary"
	"slices"

	"goprof/arch"
)

// Snapshot is the state of a thread at one look: everything that the walker needs and cannot read later. Package
// sampler/look has the facts about the look itself.
type Snapshot struct {
	TID  int
	Regs arch.Regs
	// Unknown has a bit for each of Regs that could not be read. Recordings do not keep it.
	Unknown uint64
	Stack   []byte // copy of the stack from SP upward
	SP      uint64 // address of Stack[0]
	// Syscall is the system call that the thread was in, -1 if none.
	Syscall int64
	// Cut: the stack continues above the copy, which has reached its size limit.
	Cut bool
	// Side is a copy of other memory, made at the same moment, at SideAddr. The walker requested it: the thread's frame
	// anchor, for example.
	Side     []byte
	SideAddr uint64
	// Under is a copy of the thread's own stack from UnderSP upward, if Stack is that of a signal handler. Otherwise it is
	// empty.
	Under   []byte
	UnderSP uint64
	// Followed is a copy, made at the same moment, of the memory at a pointer in Side. It is empty if the pointer was nil
	// or bad, or could not be followed at that moment.
	Followed []byte
	// RunsOn: the thread has run since the look. Then the walker may use memory at a pointer in Side only if it is in
	// Followed. If RunsOn is false, the thread stood still during the walk, and the walker may read the memory. Recorded
	// walks (in tests) keep RunsOn only together with the bytes of Followed.
	RunsOn bool
	// Trail has copies of the memory to which a Trail leads, made at the same moment. Recordings do not keep them.
	Trail Pieces
	// Continuation is the part of the stack that was in the Java heap.
	Continuation Continuation
	// PACMask has the address bits for pointer authentication (arm64).
	PACMask uint64
}

// Reset clears s for the next look, but keeps its memory.
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

// LowestInto returns the lowest address between low and high among the words of Stack. It returns high if there is
// none. If Stack is a signal handler's, the thread uses its own stack from that address upward.
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
