package profile

import "time"

// Instant is one moment on two clocks.
type Instant struct {
	Wall  int64 // ns since 1970
	Ticks int64 // System.nanoTime() of the target: CLOCK_MONOTONIC of its time namespace
}

// Thread is the thread that was looked at. Two Threads that differ in anything are two in a recording. So a thread that
// renames itself becomes two.
type Thread struct {
	TID      int    // of the kernel's thread, of the carrier for a virtual one; 0 if there is none
	Name     string // the kernel's name for it
	JavaID   int64  // Thread.threadId(), 0 if it is no Java thread or is not known
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
	// StackNumber is a number that no other stack of the recording has, 0 if the reader does not number stacks. Equal
	// stacks may have different numbers.
	StackNumber uint64
	State       State
	// NoState says that State is not known, as in samples and sums of other tools.
	NoState bool
	// Count is how many looks this sample stands for. 0 means 1, or no look if the sample is TimeOnly.
	Count int64
	// TimeOnly says that no look found the stack: the sample is CPU time for which there is no look.
	TimeOnly bool
	CPU      time.Duration // that the thread was charged since the last look; 0 if not known
	// Wall says that a wall-clock mode took the sample: of any thread, whether it had a CPU or not.
	Wall bool
	Span time.Duration // of a wall sample: the time that it stands for
	// Bytes is the amount that the sample stands for, if its event counts bytes.
	Bytes int64
	// Event is the event of the sample. It is nil for CPU time and for time that passed. In a recording with several
	// parts it also says to which part a wall sample belongs.
	Event *EventKind
	// IO is the call that the sample is, of an event of calls that read and write.
	IO *IOCall
	// Link is the span for which the thread worked, if a tracing agent in the program says so.
	Link Link
	// WakerLink is the span of the thread that ended the wait, in a recording with wakers.
	WakerLink Link
	// About says that the leaf of Stack is not code, but the event's object, mostly a class.
	About bool
}

// Read sees to it that the sample has its stack.
func (s *Sample) Read() error {
	if s.Stack != nil || s.Unread == nil {
		return nil
	}
	return s.Unread()
}

// Looks is how many looks the sample stands for.
func (s *Sample) Looks() int64 {
	if s.TimeOnly {
		return s.Count
	}
	return max(s.Count, 1)
}

// StateKey distinguishes the leaves that LacksLeaf and State give to one stack: 0 is none.
func (s *Sample) StateKey() uint64 {
	if !s.Wall || s.NoState {
		return 0
	}
	return uint64(s.State) + 1
}

// LacksLeaf reports whether the stack still needs its state as a leaf, as stacks of wall-clock modes have one.
func (s *Sample) LacksLeaf() bool {
	return s.Wall && !s.NoState && (s.Stack == nil || s.Stack.StateAt() < 0)
}
