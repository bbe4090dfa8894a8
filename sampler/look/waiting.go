package look

import (
	"goprof/arch"
	"goprof/process"
)

// Waiting is what there is to tell, at the moment of a look, of what a thread did or waited for. Only a look
// of a wall-clock recording has it (Look.Tally is set).
type Waiting struct {
	// State is the kernel's letter (proc(5)): R runs or is ready to, S, D, T.
	State byte
	// NoCPU: it was ready to run and had no CPU.
	NoCPU bool
	// Call is the system call that it was in, File what that is about.
	Call arch.Call
	File FileKind
	// Java is what the JVM says of a Java thread; see there.
	Java process.JavaWait
	// ByStack: it left its CPU by itself, and only its stack says what for.
	ByStack bool
	// Unstopped: of its registers only pc and sp are known.
	Unstopped bool
}

// Reset forgets all.
func (w *Waiting) Reset() { *w = Waiting{} }

// FileKind is what a file descriptor leads to.
type FileKind uint8

const (
	NoFile FileKind = iota
	Socket
	Selector // an epoll instance
	Pipe     // a named one is a RegularFile
	RegularFile
	OtherFile // an event counter, a timer ...
)
