package profile

import "time"

// ThreadDump is one look at one thread.
type ThreadDump struct {
	TID   int
	Name  string
	State string // as Java says it, else the kernel's
	Stack Stack
	// Virtual is the virtual thread that this is the look at, one that no carrier ran: TID is 0 then.
	// Nil for a thread of the kernel's.
	Virtual *VirtualThread
	// Java: it runs an application's code, or the JDK's. Others are the JVM's own: collectors, compilers.
	Java   bool
	Daemon bool
	CPU    time.Duration // that it has used since it began
	// Holds and WaitsFor are there where locks were asked for.
	Holds    []HeldLock
	WaitsFor *WantedLock // nil: it waits for no lock, or that is not known
	// Err says why there is no stack at all; empty otherwise.
	Err string
}

// VirtualCensus says how many virtual threads a dump has found that no carrier ran.
type VirtualCensus struct {
	Seen  int `json:"seen"`  // in the JVM's thread containers, mounted ones too
	Shown int `json:"shown"` // with their stacks
	// those of which there is no stack, or not all of it, and places that may tell of others: by reason
	Unread map[string]int `json:"unread"`
	// Untracked: the JVM keeps no list of those that were started without an executor.
	Untracked bool `json:"untracked,omitempty"`
}
