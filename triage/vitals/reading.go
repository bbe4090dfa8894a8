package vitals

import (
	"time"

	"goprof/process/maybe"
)

// Reading holds what was read at one moment. Its parts are read one after the other, within Took.
type Reading struct {
	At   time.Time     // the beginning, with Go's monotonic clock
	Took time.Duration // the length, and so the largest possible cost for goprof

	JVM     JVM
	Process Process
	// Threads are all threads of the process, lowest number first, up to MaxThreads. Unread counts the others.
	Threads []Thread
	Unread  int
	Cgroup  Cgroup
	Machine Machine
}

// Pool is an amount of memory that is used up to a limit, in bytes.
type Pool struct {
	Used      maybe.Value[uint64]
	Committed maybe.Value[uint64] // memory that the process has obtained
	Max       maybe.Value[uint64] // also not known if there is no limit
}

// Full returns the used part of the limit, 0 to 1. ok is false if one of the two is not known.
func (p Pool) Full() (share float64, ok bool) {
	used, ok := p.Used.Get()
	limit, ok2 := p.Max.Get()
	if !ok || !ok2 || limit == 0 {
		return 0, false
	}
	return float64(used) / float64(limit), true
}
