package unwind

import (
	"strings"

	"goprof/profile"
)

const concurrentLocks = "java.util.concurrent.locks."

// WantsAlone reports whether a thread wants to be the only owner of what it waits for. The lock's queue does not say it
// in the same way on all JDKs; the methods that the thread is in do. Which ones those are was the same since JDK 5.
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
