package vitals

import (
	"time"

	"goprof/process/maybe"
)

// Reading is what was read at one moment. Its parts are read one after the other, within Took.
type Reading struct {
	At   time.Time     // when it began, with Go's monotonic clock
	Took time.Duration // how long it took: what it cost goprof, at most

	JVM     JVM
	Process Process
	// Threads are all threads of the process, lowest number first. More than MaxThreads are not read: Unread counts them.
	Threads []Thread
	Unread  int
	Cgroup  Cgroup
	Machine Machine
}

// Pool is an amount of memory that is used up to a limit, in bytes.
type Pool struct {
	Used      maybe.Value[uint64]
	Committed maybe.Value[uint64] // what the process has of it now
	Max       maybe.Value[uint64] // not known, too, where there is no limit
}

// Full is which part of its limit is used, 0 to 1. ok is false where one of the two is not known.
func (p Pool) Full() (share float64, ok bool) {
	used, ok := p.Used.Get()
	limit, ok2 := p.Max.Get()
	if !ok || !ok2 || limit == 0 {
		return 0, false
	}
	return float64(used) / float64(limit), true
}
