package profile

// Core is what a core file tells besides its threads.
type Core struct {
	File string
	Size int64
	// Cut is how many bytes it should have and has not: it was cut off.
	Cut uint64
	// Tool: a debugger wrote it (gcore), of a process that may have lived on.
	Tool bool
	// Signal is what ended the process; nil where nothing did, or the core does not say.
	Signal *Signal
	// Cause is the fault that the JVM had caught before it ended itself: it writes its hs_err file first, and calls
	// abort then.
	Cause *Signal
	// Died is the thread that got the signal. Its stack is the first of the dump.
	Died ThreadRef
	// Missing are files that the core does not hold, that were needed, and that were not found.
	Missing []MissingFile
	// Unproven are files that the core does not hold, and that their content alone proves to be the right ones.
	Unproven  []UnprovenFile
	Collector string // G1, ZGC ...; empty: not known
	// In bytes; 0: not known.
	HeapUsed, HeapCommitted, HeapMax uint64
	Collecting                       bool // all threads were stopped for a collection
}

// Signal is a signal that a thread got, and where.
type Signal struct {
	Number int
	Name   string // SIGSEGV
	Why    string // SEGV_MAPERR: nothing is mapped there; empty: not known
	// Addr is the address of a fault. It counts where HasAddr is set.
	Addr    uint64
	HasAddr bool
	Where   string // what Addr lies in: "libjvm.so", "[stack of this thread]", "no mapping"
	PC      uint64
	Code    []byte // the bytes from PC on
	// Frame is the frame of that thread's stack which the signal met, -1 where it is not known.
	Frame  int
	Sender int // the process that sent it, 0: the kernel, or not known
}

// MissingFile is a file that was needed to read a core, and not found.
type MissingFile struct {
	Path    string
	BuildID string
	Why     string
}

// UnprovenFile is a file without a build id. Percent of the words that the core has of it are the file's.
type UnprovenFile struct {
	Path    string
	Percent int
}
