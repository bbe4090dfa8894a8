package contention

import (
	"slices"

	"goprof/profile"
)

// Deadlocks returns the deadlocks of some threads, by name.
func Deadlocks(threads []profile.ThreadDump) (all [][]profile.ThreadRef) {
	for _, cycle := range New(threads).Deadlocks {
		var refs []profile.ThreadRef
		for _, i := range cycle {
			refs = append(refs, threads[i].Ref())
		}
		all = append(all, refs)
	}
	return all
}

// OnlyDeadlocked removes virtual threads without a carrier that are in no deadlock.
func OnlyDeadlocked(threads []profile.ThreadDump) []profile.ThreadDump {
	dead := map[uint64]bool{}
	for _, cycle := range Deadlocks(threads) {
		for _, ref := range cycle {
			dead[ref.Virtual] = true
		}
	}
	return slices.DeleteFunc(threads, func(t profile.ThreadDump) bool { return t.Virtual != nil && !dead[t.Virtual.ID] })
}
