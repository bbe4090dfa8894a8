package contention

import "goprof/profile"

// endless reports whether a thread waits as long as the owner of its lock holds it.
//
// One that wants to read what readers hold does not wait for them, but for a writer that stands in front of it. If that
// one gives up in time (tryLock), the reader goes on. So a writer must be known that never gives up, and none that may.
func endless(i int, threads []profile.ThreadDump) bool {
	w := threads[i].WaitsFor
	if w.Timed {
		return false
	}
	if w.Kind != profile.Shared || w.Alone {
		return true
	}
	writer := false
	for k := range threads {
		other := threads[k].WaitsFor
		switch {
		case threads[k].Unconfirmed:
			return false // it may be the writer that gives up
		case other == nil || other.ID != w.ID:
		case other.Timed:
			return false
		case other.Alone:
			writer = true
		}
	}
	return writer
}
