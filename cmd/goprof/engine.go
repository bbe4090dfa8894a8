//go:build linux

package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/profile"
	"goprof/session"
)

type engineFlag struct {
	engine      string
	engineGiven bool
}

const engineHelp = `With --engine perf the kernel takes the samples (perf_event_open) and no thread is stopped. That
costs a thread less than a stop. It needs CAP_PERFMON and CAP_BPF (Debian's kernels: CAP_SYS_ADMIN)
outside of PID namespaces, and most containers forbid it. Stacks end at 64 KB, and at native code
without unwind information. --engine auto, the default, uses perf where it works, and ptrace, which
stops threads, elsewhere. With --engine auto on the command line goprof says why it chose.`

var engineNames = func() (names []string) {
	for _, e := range session.Engines {
		names = append(names, string(e))
	}
	return names
}()

func (f *engineFlag) add(cmd *cobra.Command, fs *pflag.FlagSet) {
	fs.StringVar(&f.engine, "engine", string(session.AutoEngine),
		"`what` takes samples: ptrace, stops; perf, the kernel; auto, perf where it works")
	completeFrom(cmd, "engine", engineNames)
}

func (f *engineFlag) check(cmd *cobra.Command, mode string, maxOverhead float64) error {
	f.engineGiven = cmd.Flags().Changed("engine")
	switch {
	case !slices.Contains(engineNames, f.engine):
		return usageError(cmd, fmt.Sprintf("--engine is ptrace, perf or auto, not %q", f.engine), with("engine", "auto"))
	case f.engine == string(session.PerfEngine) && mode != profile.ModeCPU && mode != profile.ModeOffCPU:
		return usageError(cmd, "--engine perf is for --mode cpu and off-cpu: its timers run while a thread has a CPU",
			without("engine"))
	case f.engine == string(session.PerfEngine) && maxOverhead > 0:
		return usageError(cmd, "--max-overhead is for --engine ptrace: perf_event does not say what a sample costs",
			without("max-overhead"))
	}
	return nil
}
