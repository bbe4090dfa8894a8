package triage

import (
	"fmt"

	"goprof/profile"
)

// glibc returns memory to the system only from the end of an arena. A JVM with many threads has many arenas. Free
// chunks in them are unused memory of the process. That is harmless if memory is plenty.
const (
	keptBytes = 256 << 20
	keptShare = 0.25 // of the resident memory
	// lookedEnough is the part of the arenas that must have been examined. The rest may have a similar share of free
	// memory.
	lookedEnough = 0.5
)

func mallocKept(x *exam) *suspicion {
	if len(x.Memory) == 0 {
		return x.cannotTell("where its memory is could not be read (/proc/PID/pagemap)")
	}
	m := x.lastMemory()
	a := &m.Malloc
	if a.InUse >= keptBytes && float64(a.Looked) < lookedEnough*float64(a.InUse) {
		return x.cannotTell("the arenas of malloc could not be looked through")
	}
	if a.Free < keptBytes || float64(a.Free) < keptShare*float64(m.Resident) {
		return nil
	}
	return &suspicion{sure: 0.7, severity: profile.Notice,
		claim: fmt.Sprintf("malloc keeps %s of memory that is free: %s of all that the process has.", size(a.Free),
			percent(float64(a.Free)/float64(m.Resident))),
		evidence: []string{fmt.Sprintf("%s in the main arena and %d of threads; %s of that looked through", size(a.InUse),
			a.Arenas, size(a.Looked))},
		next: fmt.Sprintf("jcmd %d System.trim_native_heap  (JDK 17.0.9, 21 and later), then MALLOC_ARENA_MAX=2; "+
			"goprof memory %d", x.PID, x.PID)}
}
