package arch

import "errors"

// Exit is how the code at some pc returns to its caller, in terms of the registers at that pc. A Tracer finds the Exit
// by reading the code ahead up to its return. Any instruction has an Exit: before a frame is built, while it is built,
// and after it was removed.
type Exit struct {
	RA Loc // where the return address is now
	SP Loc // what the stack pointer will be in the caller (never AtMem)
	FP Loc // where the caller's frame pointer is now
	// Saved is where the code has saved an earlier stack pointer that it will restore, if there is one. The register of
	// a Loc that is relative to that value is SavedSP.
	Saved Loc

	// Jump: the code does not return by itself, but jumps out of its blob. RA and SP are then the return address and stack
	// pointer for the code at the target.
	Jump bool
	// Indirect: the jump goes to an address in a register or in memory. If several jumps leave a blob, the Exit is an
	// indirect jump, because direct jumps go to slow paths.
	Indirect bool
	// Target is the address to which an indirect Jump goes, if known. It may be a return address that the code has popped.
	Target Loc
	// Through is the word in memory from which an indirect Jump reads its target.
	Through Loc
	// Taken is a return address that the code at a Jump still has, although the code does not return there: the word
	// below the stack pointer, a word that was just popped, or the link register.
	Taken Loc
	// End is the stack pointer at the return or jump.
	End Loc
	// SenderSP is what CPU.Java.SenderSP holds at the end: for code on its way into the interpreter, the caller's stack
	// pointer before adapters moved it.
	SenderSP Loc
	// BCP is what CPU.Java.BCP holds at the end: code that keeps to the conventions of C gives the interpreter its
	// registers back.
	BCP Loc
	// Kept is the set (by bit) of registers that are known to be unchanged.
	Kept uint64
	// ThrownAt is what CPU.Java.ThrownAt holds at an indirect Jump by register. If code has dropped a frame because of
	// an exception and jumps to the caller's handler, ThrownAt is the address to which the code would have returned.
	ThrownAt Loc
	// WritesRA: the code ahead writes its return address, or that of the standard frame at the frame pointer. If the
	// new return address is not known, RA is the word that is in its place now.
	WritesRA bool
	// Calls: the path went past a call. If that call never returns, the code behind it may belong to something else.
	Calls bool
	// FrameBuilt: the search stopped before the exit, because a frame was complete: a standard frame (TraceEntry), or one
	// of the given size (Trace, TraceTo).
	FrameBuilt bool
}

// Popped returns e with ra as the return address. It is for code that has removed its own return address and jumps into
// a caller's frame, as exception handling does. ra is Target or Taken.
func (e Exit) Popped(ra Loc) Exit {
	e.RA, e.SP = ra, e.End
	return e
}

// LocKind is how to evaluate a Loc.
type LocKind uint8

const (
	Unknown LocKind = iota
	Value           // register Reg + Off
	AtMem           // the word at register Reg + Off
)

// Loc is a value in terms of the registers at the traced pc.
type Loc struct {
	Kind LocKind
	Reg  uint8
	Off  int32
}

// RegPlus returns the Loc for register reg plus off.
func RegPlus(reg uint8, off int32) Loc { return Loc{Value, reg, off} }

// MemAt returns the Loc for the word at register reg plus off.
func MemAt(reg uint8, off int32) Loc { return Loc{AtMem, reg, off} }

// Errors of a Tracer.
var (
	ErrNoExit = errors.New("arch: no way out of this code was found")
	ErrNoCode = errors.New("arch: pc is not in this code")
)

// Tracer reads code ahead. It keeps scratch memory: one Tracer for each goroutine.
type Tracer interface {
	// Trace follows the code, which starts at base, from pc to its exit. If pc may lie in code that builds a frame of a
	// known size, frame is that size in bytes. Then Trace stops where the frame is complete, because a long method's exit
	// is far away. Otherwise frame is 0.
	Trace(code []byte, base, pc uint64, frame int32) (Exit, error)
	// TraceTo is for code whose exit cannot be found. It follows the code only until a frame of that size is complete:
	// where whole returns true, or at a jump through a table, because a method makes such a jump only while it has its
	// frame.
	TraceTo(code []byte, base, pc uint64, frame int32, whole func(pc uint64) bool) (Exit, error)
	// TraceEntry goes to the exit as Trace does, but stops where a standard frame is complete, if that comes first. It is
	// for the interpreter's method entries, which build a frame and never return.
	TraceEntry(code []byte, base, pc uint64) (Exit, error)
}
