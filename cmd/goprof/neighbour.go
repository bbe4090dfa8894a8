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
	// oomScore is far above the score of other programs, so the kernel kills goprof first when memory runs out.
	oomScore = "900"
	// processors limits how many OS threads of goprof run Go code at a time: one takes samples, one walks stacks, two
	// are for the garbage collector and everything else. A machine with fewer CPUs needs the same number, because the
	// sampling thread keeps its processor (Go's P) while it sleeps. So it need not wait for one when it wakes up.
	processors = 4
)

// goFirst makes the kernel kill goprof before the JVM when memory runs out. If the kernel refuses, nothing changes.
func goFirst() { os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0) }

// makeRoom is for recordings with several engines: each engine keeps its processor while it sleeps.
func makeRoom(engines int) { runtime.GOMAXPROCS(processors + engines - 1) }

// drawers are commands that only read files. They may take the memory that their result needs.
var drawers = []string{"flame", "report", "convert", "heat", "diff", "serve"}

// beGoodNeighbour limits what a command takes from the machine. record and top call goFirst later, after they have
// started other programs, which would inherit the score.
func beGoodNeighbour(cmd *cobra.Command) {
	if cmd.Name() == watchdogName || cmd.Name() == openerName {
		return // these commands use next to nothing and outlive goprof, and a browser would inherit the score
	}
	if cmd.Name() != "record" && cmd.Name() != "top" && cmd.Name() != agentName {
		goFirst()
	}
	if slices.Contains(drawers, cmd.Name()) {
		return
	}
	runtime.GOMAXPROCS(processors)
	if cmd.Name() == agentName {
		return // an agent's memory grows with the number of JVMs: with a memory goal it would collect garbage all the time
	}
	debug.SetMemoryLimit(session.MemoryGoal)
}
