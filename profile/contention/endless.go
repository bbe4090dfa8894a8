package contention

import "goprof/profile"

// endless reports whether a thread waits without a time limit until the owner of its lock releases the lock.
//
// If readers hold a read-write lock, another reader need not wait for them. It only waits for a writer before it in the
// queue. If that writer gives up after some time (tryLock), the reader continues. So a reader's wait is endless only if
// there is a writer before it, and no such writer can give up.
func endless(i int, threads []profile.ThreadDump) bool {
	w := threads[i].WaitsFor
	if w.Timed || w.Kind == profile.Task { // any thread may cancel a task or complete a future
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
			return false // this may be the writer before it, and it may give up
		case other == nil || other.ID != w.ID:
		case other.Timed:
			return false
		case other.Alone:
			writer = true
		}
	}
	return writer
}
