package ptrace

// Hint is what is known of a thread before it is stopped.
type Hint struct {
	// StackTop is the first address above the thread's stack, 0 if that is not known.
	StackTop uint64
	// StackLow is the first address of the thread's stack, 0 if that is not known. A stack pointer below StackLow, too,
	// is on another stack.
	StackLow uint64
	// Side is another piece of memory, of SideLen bytes, that is to be copied in the same
	// moment as the stack; 0 for none. At most MaxSide bytes.
	Side    uint64
	SideLen int
	// FollowAt is the offset in Side of a pointer. Unless the pointer is nil, FollowLen bytes from its target are
	// copied as well; a FollowLen of 0 is for none. At most maxFollow bytes.
	FollowAt  int
	FollowLen int
	// Handle is the address of the thread's handle, for Trail.ObjectSize; 0 for none.
	Handle uint64
	// Pointer is the thread's thread pointer, 0 if that is not known. Looks without a stop need it for Contexts.
	Pointer uint64
	// Soon: what is read of the thread after its look is wanted (sampler.Config.After). A Tracer reads it in any case.
	Soon bool
	// Skip: leave the thread alone. Its CPU time is no matter of the run's.
	Skip bool
}

// MaxSide and maxFollow bound those pieces.
const (
	MaxSide   = 1024
	maxFollow = 16 << 10
)
