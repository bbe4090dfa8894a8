package unwind

import (
	"strings"

	"goprof/profile"
)

const concurrentLocks = "java.util.concurrent.locks."

// WantsAlone reports whether a thread waits for exclusive ownership of a lock. JDKs differ in how the lock's queue
// shows that, but the thread's methods have been the same since JDK 5.
func WantsAlone(w *profile.WantedLock, stack *profile.Stack) bool {
	if w.Kind != profile.Shared {
		return w.Kind == profile.Monitor || w.Kind == profile.Exclusive
	}
	inside := false
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if !f.Kind.Java() || f.Func == nil {
			continue
		}
		name, of := strings.CutPrefix(f.Func.Name, concurrentLocks)
		switch {
		case !of && inside:
			return false
		case strings.HasPrefix(name, "ReentrantReadWriteLock$WriteLock."):
			return of
		case strings.Contains(name, "$ReadLock."):
			return false
		}
		inside = inside || of
	}
	return false
}
