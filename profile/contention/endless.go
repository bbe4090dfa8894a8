package contention

import "goprof/profile"

// endless reports whether a thread waits as long as the owner of its lock holds it.
//
// A thread that wants to read what readers hold does not wait for them, but for a writer in front of it. If that writer
// gives up after some time (tryLock), the reader goes on. So the wait is endless only if one writer in front never
// gives up and no other may.
func endless(i int, threads []profile.ThreadDump) bool {
	w := threads[i].WaitsFor
	if w.Timed || w.Kind == profile.Task { // a task can be cancelled, and a future completed, by any thread
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
			return false // this may be the writer in front, and it may give up
		case other == nil || other.ID != w.ID:
		case other.Timed:
			return false
		case other.Alone:
			writer = true
		}
	}
	return writer
}
