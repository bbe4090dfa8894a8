package main

import (
	"github.com/spf13/pflag"

	"goprof/output"
)

// The help of flags that several commands have.
const (
	rawNamesUsage     = "names as the JVM has them: addresses of hidden classes, mangled Kotlin, Scala, Ruby"
	hideInternalUsage = "one frame for each run of frames that only pass calls on: [reflection], [lambda], " +
		"[thread entry], [futex wait] ..."
	groupThreadsUsage = "one thread for each pool: pool-1-thread-*"
)

// addShape adds the flags that show several frames or threads as one.
func addShape(flags *pflag.FlagSet, s *output.Shape) {
	flags.BoolVar(&s.HideInternal, "hide-internal", false, hideInternalUsage)
	flags.BoolVar(&s.GroupThreads, "group-threads", false, groupThreadsUsage+", if stacks begin with threads")
}
