//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/profile"
	"goprof/session"
)

// modeFlags say which threads are looked at, and how.
type modeFlags struct {
	mode       string
	allThreads bool
	states     []string
	chosen     map[profile.State]bool
}

var modes = []string{string(session.CPUMode), string(session.WallMode), string(session.WaitingMode),
	string(session.TTSPMode)}

const modeHelp = `--mode wall looks at every thread 20 times a second, whatever the thread does, so a sample is a
twentieth of a second. The leaf of each stack says what the thread did: [running], [runnable] (it
waits for a CPU), [blocked] (on a monitor), [parked], [sleeping], [waiting] (in Object.wait),
[socket], [file], [in VM], [in native]. A thread at rest is never stopped, so some of its native
frames may be missing: --native-once stops it once to find them all. --nonblocking stops no thread;
a thread that runs then has no stack. Idle threads of the JVM itself (collectors, compilers,
finalizer ...) are counted and left out; --all-threads and --thread show them.

--mode off-cpu counts only waiting, and the leaf says for what: [parked: class of the blocker],
[blocked: class of the monitor], [socket: read], [file: write].

Both modes also count all virtual threads that no carrier runs, by their state and stack. goprof
reads some of them from the heap, drawn by lot, about ten times a second. The account says how far
chance may move shares.

--mode ttsp (time to safepoint) counts only threads that keep a safepoint waiting: from the moment
at which the JVM asks all threads to stop until the thread has come. goprof checks 1,000 times a
second whether the JVM waits, and only then looks at threads. Stacks are counted in time. The
account says how long the JVM waited in all, by its own clock, and for which operations. [running]
computes without a safepoint poll; [runnable] had no CPU to come on.`

func (f *recordFlags) addMode(fs *pflag.FlagSet) {
	fs.StringVar(&f.mode, "mode", modes[0],
		"`which` threads: cpu (those that use CPU time), wall (all), off-cpu (those that wait) or ttsp (those that keep "+
			"a safepoint waiting)")
	fs.StringSliceVar(&f.states, "state", nil,
		"in modes wall and off-cpu: only threads in these `states`: blocked,parked")
	fs.BoolVar(&f.allThreads, "all-threads", false,
		"in modes wall and off-cpu: also the JVM's own threads while these are idle")
	fs.BoolVar(&f.all.NonBlocking, "nonblocking", false,
		"in modes wall and off-cpu: never stop a thread; what runs has no stack")
	fs.BoolVar(&f.all.NativeOnce, "native-once", false,
		"in modes wall and off-cpu: stop a thread once where it comes to rest, for its native frames")
}

// wallRate is the default rate of looks at each thread in a wall-clock mode.
const wallRate = 20

// gatherRate is the default rate at which goprof checks whether the JVM waits for a safepoint.
const gatherRate = 1000

func (f *recordFlags) checkMode(cmd *cobra.Command, weight profile.Weight) error {
	if !slices.Contains(modes, f.mode) {
		return usageError(cmd, fmt.Sprintf("there is no mode %q; there are %s", f.mode, strings.Join(modes, ", ")),
			with("mode", "wall"))
	}
	mode, native, quiet := session.Mode(f.mode), f.all.NativeOnce, f.all.NonBlocking
	wall := mode.IsWall()
	f.chosen = map[profile.State]bool{}
	for _, name := range f.states {
		s, err := profile.ParseState(name)
		if err != nil {
			return usageError(cmd, "--state: "+err.Error(), with("state", "blocked"))
		}
		f.chosen[s] = true
	}
	switch {
	case !wall && len(f.states) > 0:
		return usageError(cmd, "--state is for --mode wall and off-cpu: in mode cpu all threads run",
			toWall(cmd))
	case mode == session.TTSPMode && (f.allThreads || native):
		return usageError(cmd, "--all-threads and --native-once are for --mode wall and off-cpu: "+
			"ttsp looks only at threads that keep a safepoint waiting", without("all-threads", "native-once"))
	case mode == session.WaitingMode && f.chosen[profile.Running]:
		return usageError(cmd, "--state running is for --mode wall: off-cpu shows what waits",
			with("mode", "wall"), without("event", "min"))
	case !wall && f.allThreads:
		return usageError(cmd,
			"--all-threads is for --mode wall and off-cpu: in mode cpu every thread that uses CPU time is seen",
			toWall(cmd))
	case !wall && (quiet || native):
		return usageError(cmd, "--nonblocking and --native-once are for --mode wall and off-cpu: "+
			"a thread that uses CPU time can only be seen by a stop", toWall(cmd))
	case quiet && native:
		return usageError(cmd, "--nonblocking stops no thread, --native-once does: give one", without("native-once"))
	case wall && weight == profile.CPUTime:
		return usageError(cmd, "--weight cpu is for --mode cpu; in wall-clock modes it is samples or time",
			with("weight", "time"))
	case weight == profile.Bytes:
		return usageError(cmd, "--weight is samples, cpu or time, not \"bytes\"", without("weight"))
	case !wall && weight == profile.WallTime:
		return usageError(cmd, "--weight time is for --mode wall and off-cpu; it is samples or cpu here",
			without("weight"))
	}
	return nil
}

// toWall returns a fix that adds the mode that some flags need. Beside --event, which excludes a mode, it removes the
// flags.
func toWall(cmd *cobra.Command) fix {
	if cmd.Flags().Changed("event") {
		return without("state", "all-threads", "nonblocking", "native-once")
	}
	return with("mode", "wall")
}

// usualRate returns the default rate of a mode. cpu is the default for CPU time.
func usualRate(mode session.Mode, cpu float64) float64 {
	switch {
	case !mode.IsWall():
		return cpu
	case mode == session.TTSPMode:
		return gatherRate
	}
	return wallRate
}
