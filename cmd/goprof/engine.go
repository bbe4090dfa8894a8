//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/profile"
	"goprof/sampler/offcpu"
	"goprof/sampler/ring"
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

// choose chooses the engine for one JVM, and tells the user what the choice means.
func (p *part) choose(talk io.Writer) error {
	switch p.want.session() {
	case session.WaitingMode:
		return p.chooseOffCPU(talk)
	case session.TTSPMode:
		p.engine = session.PtraceEngine
		return p.prepareSafepoints()
	case session.WallMode:
		p.engine = session.PtraceEngine
		return nil
	}
	if len(p.want.asked) > 0 {
		p.engine = session.PerfEngine
		return nil
	}
	c, err := host().ChooseEngine(p.want.engine, p.pid, p.flags.maxOverhead)
	if err != nil {
		return attachError(p.pid, err)
	}
	p.engine = c.Engine
	if c.Note != "" && p.flags.engineGiven && !p.flags.quiet {
		tellNotes(talk, []profile.Note{{Name: "engine", Text: c.Note, Remedy: c.Remedy}})
	}
	return nil
}

// notes is what the user should know of a recording besides its figures.
func (r *recorder) notes(sum *profile.Summary) []profile.Note {
	return append(append(sum.Notes, host().Notes(r.session)...), r.ownNotes(sum)...)
}

// ownNotes returns what the user should know of one part.
func (p *part) ownNotes(sum *profile.Summary) (notes []profile.Note) {
	if p.event != nil && p.event.Note != "" {
		notes = append(notes, profile.Note{Name: "event", Text: p.event.Note})
	}
	if cut := sum.TruncatedBy[profile.StackCut.String()]; cut > 0 && p.engine == session.PerfEngine && p.event == nil {
		notes = append(notes, p.stackNote(cut, sum.Samples))
	}
	return notes
}

// stackNote reports stacks that were longer than what perf_event copies.
func (p *part) stackNote(cut, samples int64) profile.Note {
	most, by := ring.MostCopied(), ""
	if p.want.session() == session.WaitingMode {
		most, by = min(most, offcpu.SwitchStack), "--event off-cpu " // looks, 20 times a second
	}
	return profile.Note{Name: "stacks-cut",
		Text: fmt.Sprintf("%d of %d stacks end where perf_event stops to copy: after %d KB, or at memory that is not present",
			cut, samples, (most+1023)>>10),
		Remedy: fmt.Sprintf("goprof record %s--engine ptrace --pid %d", by, p.pid)}
}
