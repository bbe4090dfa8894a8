package contention

import "goprof/profile"

// endless reports whether a thread waits until the owner of its lock releases the lock, with no time limit.
//
// If readers hold a read-write lock, another reader need not wait for them. It waits only for a writer that is in the
// queue before it. If that writer gives up after some time (tryLock), the reader goes on. So a reader's wait is endless
// only if there is a writer before it, and no writer may give up.
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
