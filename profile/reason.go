package profile

// Reason is why a stack is not whole, or why a sample was lost. The list is closed: a report can name every reason, and
// a new failure must get a name here.
type Reason uint8

const (
	Whole Reason = iota // the thread's root was reached

	// Truncated stacks: their frames are right, but the root was not reached.
	NoUnwindInfo     // native code without unwind information, and no anchor above it
	NotCode          // a return address that is not in code
	StackRange       // a frame outside the thread's stack, or not above the last one
	StackCut         // the stack is longer than its copy
	TooDeep          // more frames than --depth
	BadMethod        // an interpreted frame with an inconsistent method
	BadInterpreted   // an interpreter frame with inconsistent links
	BadCompiled      // compiled code whose frame could not be found
	BadDebugInfo     // a compiled frame whose debug information cannot be decoded
	StubFrame        // generated code whose frame could not be found
	EntryFrame       // an inconsistent call stub frame
	Deoptimizing     // the frame was being rebuilt as interpreter frames
	Continuation     // callers are in the heap chunk of a virtual thread
	UnreadableMemory // the target's memory could not be read
	CodeChanged      // the code was replaced during the look
	NotStopped       // looked at without a stop, and no anchor to start from

	// Lost samples: there is no stack at all.
	ThreadGone   // the thread ended before or during its pause
	NotPermitted // the kernel refused
	StopTimeout  // the thread did not stop in time
	StopMissed   // the thread stopped late, and was released before goprof got a CPU
	Unadmitted   // the thread was not stopped, because goprof might have had no CPU to release it in time
	Silent       // the thread's memory did not answer
	ReadLate     // its memory was not read in time, for want of a CPU
	AlreadyTraced
	Stale     // waited so long for its walk that it can no longer be proven
	QueueFull // too many waited for their walks: there was no room
	Moved     // looked at without a stop: it ran during each try
	ProcessGone
	RingFull    // the kernel had no room for it
	Throttled   // the kernel dropped samples because they came too often
	NoRegisters // the kernel did not give the thread's registers
	Other       // must stay under 0.005 %

	NumReasons
)

var reasonNames = [NumReasons]string{
	Whole:            "whole",
	NoUnwindInfo:     "no unwind info",
	NotCode:          "return address not in code",
	StackRange:       "frame outside the stack",
	StackCut:         "stack longer than its copy",
	TooDeep:          "deeper than --depth",
	BadMethod:        "bad method",
	BadInterpreted:   "bad interpreter frame",
	BadCompiled:      "bad compiled frame",
	BadDebugInfo:     "bad debug info",
	StubFrame:        "unknown stub frame",
	EntryFrame:       "bad entry frame",
	Deoptimizing:     "deoptimizing",
	Continuation:     "continuation in the heap",
	UnreadableMemory: "unreadable memory",
	CodeChanged:      "code changed",
	NotStopped:       "not stopped",
	ThreadGone:       "thread gone",
	NotPermitted:     "not permitted",
	StopTimeout:      "did not stop in time",
	StopMissed:       "let go before the look",
	Unadmitted:       "no CPU to end the stop",
	Silent:           "memory does not answer",
	ReadLate:         "memory read too late",
	AlreadyTraced:    "already traced",
	Stale:            "stale",
	QueueFull:        "queue full",
	Moved:            "moved",
	ProcessGone:      "process gone",
	RingFull:         "no room in the kernel's ring",
	Throttled:        "throttled by the kernel",
	NoRegisters:      "no registers",
	Other:            "other",
}

func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "other"
}

// Lost reports whether r is for a sample without any stack.
func (r Reason) Lost() bool { return r >= ThreadGone }
