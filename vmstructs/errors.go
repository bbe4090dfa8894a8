package vmstructs

import (
	"errors"
	"strings"
)

var (
	// ErrNotHotSpot: the process runs no HotSpot. The error's text says what it seems
	// to run instead, where that is known.
	ErrNotHotSpot = errors.New("not a HotSpot JVM")
	// ErrZero: HotSpot's Zero VM (cpu/zero): it interprets in C++, and its Java frames stand on stacks of its own.
	ErrZero = errors.New("vmstructs: a Zero VM")
	// ErrStarting: HotSpot is there, but has not filled in what it exports. Try again.
	ErrStarting = errors.New("the JVM is still starting")
	// ErrChanged: the code or the method was replaced while it was being read.
	ErrChanged = errors.New("vmstructs: changed while it was read")
	// ErrNoBlob: no code blob stands at that pc.
	ErrNoBlob = errors.New("vmstructs: no code blob there")
	// ErrBadBlob: what stands in the code cache does not hold together.
	ErrBadBlob = errors.New("vmstructs: code blob does not hold together")
	// ErrBadDebugInfo: the debug information of compiled code does not decode.
	ErrBadDebugInfo = errors.New("vmstructs: bad debug information")
	// ErrBadMethod: a Method* whose parts do not hold together.
	ErrBadMethod = errors.New("vmstructs: not a method")
	// ErrBadThread: a JavaThread* whose parts do not hold together.
	ErrBadThread = errors.New("vmstructs: not a thread")
	// ErrMoved: the collector is moving objects, so this one cannot be read now. Try again.
	ErrMoved = errors.New("vmstructs: object is being moved")
	// ErrMissing: this JVM does not export what the question needs; see VM.Missing.
	ErrMissing = errors.New("vmstructs: not exported by this JVM")
	// ErrBadTables: the exported tables themselves do not hold together.
	ErrBadTables = errors.New("vmstructs: bad tables")
)

// Unsupported says what a JVM does not export that nothing can do without.
type Unsupported struct {
	Missing []string
}

func (e *Unsupported) Error() string {
	return "unsupported JVM: it does not export " + strings.Join(e.Missing, ", ")
}
