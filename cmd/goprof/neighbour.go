//go:build linux

package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

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

// makeRoom is for recordings with so many engines at once: each keeps its share while it sleeps.
func makeRoom(engines int) { runtime.GOMAXPROCS(processors + engines - 1) }

// drawers read files and look at no process. They take the memory that their result needs.
var drawers = []string{"flame", "report", "convert", "heat", "diff"}

// beGoodNeighbour bounds what every command takes from the machine that it looks at. record and top go first only when
// they have started what they are to start: programs inherit that.
func beGoodNeighbour(cmd *cobra.Command) {
	if cmd.Name() == watchdogName {
		return // it takes next to nothing, and should outlive goprof
	}
	if cmd.Name() != "record" && cmd.Name() != "top" && cmd.Name() != agentName {
		goFirst()
	}
	if slices.Contains(drawers, cmd.Name()) {
		return
	}
	runtime.GOMAXPROCS(processors)
	if cmd.Name() == agentName {
		return // its memory grows with the number of JVMs: a goal would have it collect garbage all the time
	}
	debug.SetMemoryLimit(session.MemoryGoal)
}
