package profile

import "time"

// Instant is one time on two clocks.
type Instant struct {
	Wall  int64 // ns since 1970
	Ticks int64 // System.nanoTime() of the target: CLOCK_MONOTONIC in its time namespace
}

// Thread is the looked-at thread. In a recording, Threads that differ in any field are different. So a thread that
// renames itself becomes two.
type Thread struct {
	TID      int    // of the kernel's thread, which is the carrier for a virtual one; 0 if there is none
	Name     string // the kernel's name for it
	JavaID   int64  // Thread.threadId(), 0 if it is not a Java thread or is not known
	JavaName string
	Virtual  bool
}

// Sample is one look at one thread. A receiver may keep its Funcs and names, but nothing else.
type Sample struct {
	At     Instant
	Thread Thread
	Stack  *Stack // leaf first
	// Unread reads Stack. It is nil unless the sample's receiver asked for samples whose stacks are not read yet: see
	// Read.
	Unread func() error
	// StackNumber is a number that no other stack of the recording has. It is 0 if the reader does not number stacks.
	// Equal stacks may have different numbers.
	StackNumber uint64
	State       State
	// NoState: State is not known, as in samples and sums of other tools.
	NoState bool
	// Count is how many looks this sample stands for. 0 means 1, or no look if the sample is TimeOnly.
	Count int64
	// TimeOnly: no look found the stack. The sample is CPU time without a look.
	TimeOnly bool
	CPU      time.Duration // CPU time since the thread's last look; 0 if it is not known
	// Wall: a wall-clock mode took the sample, whether its thread had a CPU or not.
	Wall bool
	Span time.Duration // of a wall sample: the time that it stands for
	// Bytes is the amount that the sample stands for, if its event counts bytes.
	Bytes int64
	// Event is the event of the sample. It is nil for CPU time and for wall-clock time. In a recording with several parts
	// it also identifies the part of a wall sample.
	Event *EventKind
	// IO is the sample's call, for an event of calls that read and write.
	IO *IOCall
	// Link is the span that the thread worked for, if a tracing agent in the program publishes it.
	Link Link
	// WakerLink is the span of the thread that ended the wait, in a recording with wakers.
	WakerLink Link
	// About: the leaf of Stack is not code, but the event's object, mostly a class.
	About bool
}

// Read makes sure that the sample has its stack.
func (s *Sample) Read() error {
	if s.Stack != nil || s.Unread == nil {
		return nil
	}
	return s.Unread()
}

// Looks returns how many looks the sample stands for.
func (s *Sample) Looks() int64 {
	if s.TimeOnly {
		return s.Count
	}
	return max(s.Count, 1)
}

// StateKey returns a different number for each state leaf that a stack may get (LacksLeaf). 0: it gets none.
func (s *Sample) StateKey() uint64 {
	if !s.Wall || s.NoState {
		return 0
	}
	return uint64(s.State) + 1
}

// LacksLeaf reports whether the stack still needs its state as a leaf, because stacks of wall-clock modes have one.
func (s *Sample) LacksLeaf() bool {
	return s.Wall && !s.NoState && (s.Stack == nil || s.Stack.StateAt() < 0)
}
