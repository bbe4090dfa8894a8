//go:build linux

package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"goprof/sampler/session"
)

const (
	// oomScore is far above that of other programs, for when memory runs out.
	oomScore = "900"
	// processors is how many threads of goprof's may run Go code at a time: one that samples,
	// one that walks, two for the garbage collector and what else there is. Fewer CPUs change nothing:
	// the one that samples keeps its share while it sleeps, and must not wait for another's.
	processors = 4
)

// goFirst has the kernel end goprof before the JVM. What it refuses is left as it is.
func goFirst() { os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0) }

// beGoodNeighbour bounds what goprof takes from the machine that it measures.
func beGoodNeighbour() {
	goFirst()
	runtime.GOMAXPROCS(processors)
	debug.SetMemoryLimit(session.MemoryGoal)
}
