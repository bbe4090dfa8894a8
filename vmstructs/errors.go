package vmstructs

import (
	"errors"
	"strings"
)

var (
	ErrNotHotSpot   = errors.New("not a HotSpot JVM")         // the text describes what the process seems to run instead
	ErrZero         = errors.New("vmstructs: a Zero VM")      // interprets in C++, on stacks of its own (cpu/zero)
	ErrStarting     = errors.New("the JVM is still starting") // HotSpot has not set its tables yet: try again
	ErrChanged      = errors.New("vmstructs: changed while it was read")
	ErrNoBlob       = errors.New("vmstructs: no code blob there")
	ErrBadBlob      = errors.New("vmstructs: code blob does not hold together")
	ErrBadDebugInfo = errors.New("vmstructs: bad debug information")
	ErrBadMethod    = errors.New("vmstructs: not a method")
	ErrBadThread    = errors.New("vmstructs: not a thread")
	ErrMoved        = errors.New("vmstructs: object is being moved")    // by the collector: try again
	ErrMissing      = errors.New("vmstructs: not exported by this JVM") // see VM.Missing
	ErrBadTables    = errors.New("vmstructs: bad tables")
)

// Unsupported lists the essential things that a JVM does not export.
type Unsupported struct {
	Missing []string
}

func (e *Unsupported) Error() string {
	return "unsupported JVM: it does not export " + strings.Join(e.Missing, ", ")
}
