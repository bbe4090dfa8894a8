package pprof

import (
	"time"

	"goprof/profile"
)

// Sample is some looks at one thread in one stack.
type Sample struct {
	Stack  *profile.Stack // leaf first
	Labels Labels
	Count  int64
	Time   time.Duration // CPU time, in wall-clock modes the time that passed; of allocations their bytes
}

// Labels say whose a sample is. What is empty or 0 is not written.
type Labels struct {
	Thread  string
	TID     int
	Virtual string // the name of the virtual thread that ran, or its number
	State   string
}

// The labels' names.
const (
	labelThread  = "thread"
	labelTID     = "tid"
	labelVirtual = "virtual"
	labelState   = "state"
)

// Mapping is an image that native frames lie in.
type Mapping struct {
	File         string // as Func.Module has it
	BuildID      string
	Start, Limit uint64 // addresses of its code
	Offset       uint64 // in the file
}
