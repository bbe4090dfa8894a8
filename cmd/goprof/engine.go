//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/profile"
	"goprof/sampler/session"
)

// engineFlag says what takes the samples.
type engineFlag struct{ engine string }

const engineHelp = `With --engine perf no thread is stopped: the kernel takes the samples (perf_event_open), which costs a
thread less than a stop does. It needs CAP_PERFMON, or kernel.perf_event_paranoid at 1 or less, and most
containers forbid it; stacks end at 64 KB, and at native code without unwind information. --engine auto
takes it where it is permitted and sees all, and else ptrace, the default, and says why.`

var engineNames = func() (names []string) {
	for _, e := range session.Engines {
		names = append(names, string(e))
	}
	return names
}()

func (f *engineFlag) add(cmd *cobra.Command, fs *pflag.FlagSet) {
	fs.StringVar(&f.engine, "engine", engineNames[0],
		"`what` takes samples: ptrace, stops; perf, the kernel; auto, perf where it may see all")
	cmd.RegisterFlagCompletionFunc("engine", cobra.FixedCompletions(engineNames, cobra.ShellCompDirectiveNoFileComp))
}

// check holds the flag against others.
func (f *engineFlag) check(cmd *cobra.Command, mode string, maxOverhead float64) error {
	switch {
	case !slices.Contains(engineNames, f.engine):
		return usageError(cmd, fmt.Sprintf("--engine is ptrace, perf or auto, not %q", f.engine))
	case f.engine == string(session.PerfEngine) && mode != profile.ModeCPU && mode != profile.ModeOffCPU:
		return usageError(cmd, "--engine perf is for --mode cpu and off-cpu: its timers run while a thread has a CPU")
	case f.engine == string(session.PerfEngine) && maxOverhead > 0:
		return usageError(cmd, "--max-overhead is for --engine ptrace: perf_event does not tell what a sample costs")
	}
	return nil
}

// choose finds the engine for one JVM and says what is to be said of it.
func (r *recorder) choose(talk io.Writer) error {
	f := r.flags
	switch f.modeFlags.session() {
	case session.WaitingMode:
		return r.chooseOffCPU(talk)
	case session.TTSPMode:
		r.engine = session.PtraceEngine
		return r.prepareSafepoints()
	case session.WallMode:
		r.engine = session.PtraceEngine
		return nil
	}
	if len(f.asked) > 0 {
		r.engine = session.PerfEngine
		return nil
	}
	c, err := host().ChooseEngine(session.EngineName(f.engine), r.pid, f.maxOverhead,
		f.engine == string(session.AutoEngine) && r.session.RunsVirtual())
	if err != nil {
		return attachError(r.pid, err)
	}
	r.engine = c.Engine
	if c.Note != "" && !f.quiet {
		tellNotes(talk, []profile.Note{{Name: "engine", Text: c.Note, Remedy: c.Remedy}})
	}
	return nil
}

// notes is what is to be said of a recording besides its figures.
func (r *recorder) notes(sum *profile.Summary) []profile.Note {
	notes := append(sum.Notes, host().Notes(r.session)...)
	if r.event != nil && r.event.Note != "" {
		notes = append(notes, profile.Note{Name: "event", Text: r.event.Note})
	}
	n, ok := session.StackNote(r.engine, sum.TruncatedBy[profile.StackCut.String()], sum.Samples)
	if ok && r.event == nil {
		n.Remedy = fmt.Sprintf("goprof record --engine ptrace --pid %d", r.pid)
		notes = append(notes, n)
	}
	return notes
}
