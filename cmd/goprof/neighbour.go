//go:build linux

package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"goprof/session"
)

const (
	// oomScore is far above that of other programs. So the kernel ends goprof first when memory runs out.
	oomScore = "900"
	// processors is how many OS threads of goprof may run Go code at the same time: one takes samples, one walks
	// stacks, two are for the garbage collector and everything else. A machine with fewer CPUs needs the same number:
	// the thread that takes samples keeps its processor (Go's P) while it sleeps, because it must not wait for one when
	// it wakes up.
	processors = 4
)

// goFirst lets the kernel end goprof before the JVM. If the kernel refuses, nothing changes.
func goFirst() { os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0) }

// makeRoom is for recordings with several engines at once: each keeps its processor while it sleeps.
func makeRoom(engines int) { runtime.GOMAXPROCS(processors + engines - 1) }

// drawers read files and look at no process. They take the memory that their result needs.
var drawers = []string{"flame", "report", "convert", "heat", "diff", "serve"}

// beGoodNeighbour bounds what every command takes from the machine that it looks at. record and top call goFirst later,
// after they have started other programs: these would inherit the score.
func beGoodNeighbour(cmd *cobra.Command) {
	if cmd.Name() == watchdogName || cmd.Name() == openerName {
		return // they take next to nothing, outlive goprof, and a browser would inherit the score
	}
	if cmd.Name() != "record" && cmd.Name() != "top" && cmd.Name() != agentName {
		goFirst()
	}
	if slices.Contains(drawers, cmd.Name()) {
		return
	}
	runtime.GOMAXPROCS(processors)
	if cmd.Name() == agentName {
		return // an agent's memory grows with the number of JVMs: with a goal it would collect garbage all the time
	}
	debug.SetMemoryLimit(session.MemoryGoal)
}
