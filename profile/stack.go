// Package profile holds frames, stacks, and their sums. It does not know how they were recorded, and depends on no
// other package of goprof. So everything that only shows profiles builds and runs on any operating system.
package profile

// Kind is the kind of code in a frame.
type Kind uint8

const (
	Interpreted  Kind = iota
	C1                // a frame compiled by C1, for the compiled method itself
	C2                // the same for C2 (or another top tier compiler)
	Inlined           // a method inlined into the compiled frame below it
	NativeMethod      // a Java method that is implemented in native code
	Stub              // generated code that belongs to no method
	Native            // compiled C, C++, Rust ...
	Gap               // native code without unwind information
	StateFrame        // not code, but the thread's state: see State
	Kernel            // the kernel's code, in recordings of other tools
)

var kindNames = [...]string{
	"interpreted", "c1", "c2", "inlined", "native-method", "stub", "native", "gap", "state", "kernel",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Java reports whether the frame is a Java method's.
func (k Kind) Java() bool { return k <= NativeMethod }

// Func is the function of a frame. A Func is made once and shared: equal pointers mean the same function, and a stack
// has no copies of names.
type Func struct {
	Name   string // pkg.Class.method, a demangled symbol, or lib.so+0x1f
	Module string // image of native code, empty for Java
	Build  string // the image's build id in hexadecimal digits, empty if it is not known
	File   string // source file of a Java method, if the class has one
}

// Frame is one entry of a stack.
type Frame struct {
	Func  *Func
	Kind  Kind
	Level uint8 // compilation level of compiled Java, 0 otherwise
	Sure  Certainty
	Line  int32  // source line, 0 if unknown
	BCI   int32  // bytecode index, -1 if there is none
	PC    uint64 // 0 if a frame has none of its own
	SP    uint64 // of the physical frame
	FP    uint64 // the frame pointer register in it, 0 if it is not known
}

// Stack is one look at one thread, leaf first.
type Stack struct {
	Frames []Frame
	// Truncated is why the thread's root was not reached. It is Whole if the root was reached.
	Truncated Reason
	// Mounted: the thread ran a virtual thread. The virtual thread's frames come first.
	Mounted bool
	// Carrier is the index at which the carrier's own frames begin, after the virtual thread's root. It is 0 if that root
	// was not reached, or if no virtual thread was mounted.
	Carrier int
	// Virtual is the virtual thread that was mounted.
	Virtual VirtualThread
}

// VirtualThread names a virtual thread. ID is 0 if the thread is not known.
type VirtualThread struct {
	ID   uint64
	Name string // often empty
}

// Split separates the stack of a virtual thread from its carrier's. ok is false if the carrier ran no virtual thread.
// Then all frames are the carrier's own. If a virtual thread's root was not reached, its carrier's frames are not
// known.
func (s *Stack) Split() (virtual, carrier Stack, ok bool) {
	switch {
	case s.Carrier > 0 && s.Carrier <= len(s.Frames):
		virtual = Stack{Frames: s.Frames[:s.Carrier], Mounted: true, Virtual: s.Virtual}
		return virtual, Stack{Frames: s.Frames[s.Carrier:], Truncated: s.Truncated}, true
	case s.Mounted && s.Truncated != Whole:
		return *s, Stack{Truncated: s.Truncated}, true
	}
	return Stack{}, Stack{}, false
}
