package main

import (
	"github.com/spf13/pflag"

	"goprof/output"
)

// Help texts of flags that several commands have.
const (
	rawNamesUsage     = "names as the JVM has them: addresses of hidden classes, mangled Kotlin, Scala, Ruby"
	hideInternalUsage = "one frame for each run of frames that only pass calls on: [reflection], [lambda], " +
		"[thread entry], [futex wait] ..."
	allFramesUsage    = "also the frames by which threads begin (__clone3 ... call_stub)"
	groupThreadsUsage = "one thread for each pool: pool-1-thread-*"
)

// addShape adds the flags that show several frames or threads as one.
func addShape(flags *pflag.FlagSet, s *output.Shape) {
	flags.BoolVar(&s.HideInternal, "hide-internal", false, hideInternalUsage)
	flags.BoolVar(&s.GroupThreads, "group-threads", false, groupThreadsUsage+", if stacks begin with threads")
}

// drawing holds two flags of drawings. splitKinds draws a method as one frame for each way in which it was compiled.
// allFrames also draws frames that only wait, and each of the frames with which a thread begins.
type drawing struct{ splitKinds, allFrames bool }

func (d *drawing) add(flags *pflag.FlagSet) {
	flags.BoolVar(&d.splitKinds, "split-kinds", false,
		"a frame for each kind of a method's code: interpreted, C1, compiled, inlined")
	flags.BoolVar(&d.allFrames, "all-frames", false, allFramesUsage+", and those in which they just wait")
}

// of returns the shape for a drawing.
func (d *drawing) of(s output.Shape) output.Shape {
	s = s.Drawn()
	s.MergeKinds, s.HideEntries, s.HideWaits = !d.splitKinds, !d.allFrames, !d.allFrames
	return s
}
