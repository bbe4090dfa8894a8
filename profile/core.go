package profile

// Core is what a core file says besides its threads.
type Core struct {
	File string
	Size int64
	// Cut is how many bytes the core lacks because it was cut off.
	Cut uint64
	// Tool says that a debugger wrote the core (gcore). The process may have lived on.
	Tool bool
	// Signal is what ended the process. It is nil if nothing did, or if the core does not say.
	Signal *Signal
	// Cause is the fault that the JVM caught before it ended itself. After a fault the JVM writes its hs_err file and
	// then calls abort.
	Cause *Signal
	// Died is the thread that got the signal. Its stack is the first of the dump.
	Died ThreadRef
	// Missing are files that were needed, that the core does not contain, and that were not found.
	Missing []MissingFile
	// Unproven are files that the core does not contain, and that have no build id to compare.
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
	// Frame is the index of the frame in which the thread got the signal. It is -1 if that is not known.
	Frame  int
	Sender int // the process that sent it, 0: the kernel, or not known
}

// MissingFile is a file that was needed to read a core and was not found.
type MissingFile struct {
	Path    string
	BuildID string
	Why     string
}

// UnprovenFile is a file without a build id. Percent is how many of its words that the core contains agree with the
// file.
type UnprovenFile struct {
	Path    string
	Percent int
}
