package profile

import "time"

// Instant is one moment on two clocks.
type Instant struct {
	Wall  int64 // ns since 1970
	Ticks int64 // System.nanoTime() of the target: CLOCK_MONOTONIC of its time namespace
}

// Thread is who was looked at. Two Threads that differ in anything are two in a recording, so a thread that renames
// itself is, too.
type Thread struct {
	TID      int    // of the kernel's thread, of the carrier for a virtual one; 0 if there is none
	Name     string // the kernel's name for it
	JavaID   int64  // Thread.threadId(), 0 if it is no Java thread or is not known
	JavaName string
	Virtual  bool
}

// Sample is one look at one thread. Nobody who is given one keeps anything of it but Funcs and names.
type Sample struct {
	At     Instant
	Thread Thread
	Stack  *Stack // leaf first
	// StackNumber is a number that no other stack of the recording has, 0 if the reader does not number stacks. Equal
	// stacks may have several.
	StackNumber uint64
	State       State
	// NoState says that State is not known: samples of other tools' events, sums of other tools.
	NoState bool
	// Count is how many looks this one stands for; 0 means 1.
	Count int64
	CPU   time.Duration // that the thread was charged since it was last looked at; 0 if not known
	// Wall says that the look was a wall-clock mode's: at any thread, whether it had a CPU or not.
	Wall bool
	Span time.Duration // of a wall sample: the time that it stands for
	// Bytes is what a sample of an event stands for that is counted in bytes.
	Bytes int64
	// Event is what the sample was taken at, nil of CPU time and of time that passed, but where a recording has several
	// parts: then it says which one a wall sample is of.
	Event *EventKind
	// About says that the leaf of Stack is no code but what the event was about: a class, mostly.
	About bool
}

// Looks is how many looks the sample stands for.
func (s *Sample) Looks() int64 { return max(s.Count, 1) }

// LacksLeaf reports whether the stack is to get its state as a leaf: stacks of wall-clock modes end in theirs.
func (s *Sample) LacksLeaf() bool {
	return s.Wall && !s.NoState &&
		(s.Stack == nil || len(s.Stack.Frames) == 0 || s.Stack.Frames[0].Kind != StateFrame)
}
