package ptrace

// Hint is what is known of a thread before it is stopped.
type Hint struct {
	// StackTop is the first address above the thread's stack. 0: not known.
	StackTop uint64
	// StackLow is the first address of the thread's stack. 0: not known. If the stack pointer is not between StackLow
	// and StackTop, the thread is on another stack.
	StackLow uint64
	// Side is the address of SideLen more bytes, at most MaxSide, that are copied together with the stack. 0: none.
	Side    uint64
	SideLen int
	// FollowAt is the offset of a pointer in Side. Unless the pointer is nil, FollowLen bytes from its target are copied
	// as well, maxFollow at most. FollowLen 0: none.
	FollowAt  int
	FollowLen int
	// Handle is the address of the handle of a virtual thread that the thread runs, for Trail.ObjectSize. 0: none.
	Handle uint64
	// Pointer is the thread's thread pointer. 0: not known. Looks without a stop need it for Contexts.
	Pointer uint64
	// Soon asks for reads right after the look (sampler.Config.After). A Tracer makes these reads in any case.
	Soon bool
	// Skip: leave the thread alone. The run does not account for its CPU time.
	Skip bool
}

// MaxSide and maxFollow bound SideLen and FollowLen.
const (
	MaxSide   = 1024
	maxFollow = 16 << 10
)
