package profile

// Core is the facts of a core file besides the threads.
type Core struct {
	File string
	Size int64
	// Cut is how many bytes are missing because the core was cut off.
	Cut uint64
	// Tool: a debugger wrote the core (gcore). The process may have continued.
	Tool bool
	// Signal is the signal that ended the process. It is nil if there was none, or if the core does not have it.
	Signal *Signal
	// Cause is the fault that the JVM caught before it ended itself. After a fault the JVM writes its hs_err file and
	// then calls abort.
	Cause *Signal
	// Died is the thread that got the signal. Its stack is the first of the dump.
	Died ThreadRef
	// Missing are files that were needed, but neither in the core nor found elsewhere.
	Missing []MissingFile
	// Unproven are files that are not in the core, and that have no build id to compare.
	Unproven  []UnprovenFile
	Collector string // G1, ZGC ...; empty: not known
	// In bytes; 0: not known.
	HeapUsed, HeapCommitted, HeapMax uint64
	Collecting                       bool // all threads were stopped for a collection
}

// Signal is a signal that a thread got, and where it got it.
type Signal struct {
	Number int
	Name   string // SIGSEGV
	Why    string // SEGV_MAPERR: nothing is mapped there; empty: not known
	// Addr is the address of a fault. It is valid if HasAddr is set.
	Addr    uint64
	HasAddr bool
	Where   string // where Addr is: "libjvm.so", "[stack of this thread]", "no mapping"
	PC      uint64
	Code    []byte // the bytes from PC on
	// Frame is the index of the frame in which the thread got the signal. It is -1 if that is not known.
	Frame  int
	Sender int // the process that sent it; 0: the kernel, or not known
}

// MissingFile is a file that was needed to read a core and was not found.
type MissingFile struct {
	Path    string
	BuildID string
	Why     string
}

// UnprovenFile is a file without a build id. Percent is how many of the words that the core has from the file agree
// with the file.
type UnprovenFile struct {
	Path    string
	Percent int
}
