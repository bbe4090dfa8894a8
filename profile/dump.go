package profile

// ThreadDump is one look at one thread.
type ThreadDump struct {
	TID   int
	Name  string
	State string // as Java says it, else the kernel's
	Stack Stack
	// Err says why there is no stack at all; empty otherwise.
	Err string
}
