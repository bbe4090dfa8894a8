package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"goprof/annotate"
	"goprof/annotate/machine"
	"goprof/arch/disasm"
	"goprof/cmd/goprof/exit"
	"goprof/profile"
	"goprof/sampler/guard"
	"goprof/session"
)

// liveAnnotate holds annotate's flags for a live JVM.
type liveAnnotate struct {
	jvm      oneJVM
	duration time.Duration
	rate     float64
	asm      bool
	engineFlag
}

// annotateRate is higher than record's rate, because a page shows one method, and a row only a part of it.
const annotateRate = 1000

func (f *liveAnnotate) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.duration = 10 * time.Second
	f.jvm.addFlags(cmd)
	cmd.ValidArgsFunction = nil
	fs.VarP(asTime(&f.duration), "duration", "d", "sample for so much `time`")
	fs.Float64VarP(&f.rate, "rate", "r", annotateRate, "samples for each second of CPU time, in `Hz`, up to 10,000")
	f.engineFlag.add(cmd, fs)
	fs.BoolVar(&f.asm, "asm", false, "also show the method's machine code, with samples at each instruction")
}

func (f *liveAnnotate) isLive(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("pid") || cmd.Flags().Changed("ns-pid")
}

// attach opens the JVM, and samples it if there is no file with samples. Call end when the JVM is no longer needed.
func (a *annotation) attach() (end func(), err error) {
	f := &a.flags.liveAnnotate
	if err := checkHz(a.cmd, f.rate); err != nil {
		return nil, err
	}
	if f.duration <= 0 {
		return nil, usageError(a.cmd, "--duration is above 0", without("duration"))
	}
	if err := f.engineFlag.check(a.cmd, profile.ModeCPU, 0); err != nil {
		return nil, err
	}
	pid, err := f.jvm.find(a.cmd, nil)
	if err != nil {
		return nil, err
	}
	if f.asm && !disasm.Available {
		return nil, usageError(a.cmd, "--asm: goprof has no decoder for this CPU", without("asm"))
	}
	samples := len(a.cmd.Flags().Args()) == 1
	over := watchOver()
	goFirst()
	session.LetSysmonRest()
	guard.Enter(guard.ToRecord)
	s, err := attach(a.cmd, pid, false)
	if err != nil {
		over()
		return nil, err
	}
	end = func() {
		s.Close()
		over()
	}
	a.vm, a.pid = s.VM, pid
	a.ask = func(read func()) error {
		_, err := session.Ask(s, func() (struct{}, error) { read(); return struct{}{}, nil })
		if err != nil {
			return exit.CannotLook(pid, err)
		}
		return nil
	}
	if samples {
		if err := a.sample(s, pid); err != nil {
			end()
			return nil, err
		}
	}
	return end, nil
}

func (a *annotation) sample(s *session.Session, pid int) error {
	f := &a.flags.liveAnnotate
	choice, err := exit.Host().ChooseEngine(session.EngineName(f.engine), pid, 0)
	if err != nil {
		return exit.CannotLook(pid, err)
	}
	ctx, stop := interruptible(a.cmd.Context())
	defer stop()
	a.from, a.weight = fmt.Sprintf("process %d", pid), profile.Samples
	sink := &annotateSink{stacks: annotate.NewStacks(a.Collector)}
	if f.asm {
		a.codes = machine.NewCodes(s.VM, s.Process, a.Wants)
		sink.codes = a.codes
	}
	fmt.Fprintf(a.cmd.ErrOrStderr(), "goprof: sampling process %d for %v, by %s (Ctrl-C ends it sooner)\n", pid,
		f.duration, choice.Engine)
	_, sum, err := s.Record(ctx, session.RecordOptions{Duration: f.duration, Engine: choice.Engine,
		Interval: intervalOf(f.rate), Sink: sink})
	sink.stacks.Collect()
	switch {
	case err != nil:
		return exit.CannotLook(pid, err)
	case sum.AllSamples() == 0:
		return &exit.Error{Code: exit.NoSamples, What: fmt.Sprintf("no samples of process %d", pid),
			Why:    fmt.Sprintf("it used no CPU time, or none of %d tries to take one succeeded", sum.Attempted),
			Remedy: fmt.Sprintf("goprof doctor --pid %d", pid)}
	}
	tellQuality(a.cmd.ErrOrStderr(), &sum)
	return nil
}

// annotateSink gets each sample right after its walk.
type annotateSink struct {
	stacks *annotate.Stacks
	codes  *machine.Codes // nil without machine code
}

func (s *annotateSink) Sample(of *profile.Sample) {
	s.stacks.Add(of.Stack, of.Looks())
	if s.codes != nil {
		s.codes.Add(of.Stack, of.Looks())
	}
}

func (s *annotateSink) Begin(profile.Instant, profile.Meta)         {}
func (s *annotateSink) ThreadStart(profile.Instant, profile.Thread) {}
func (s *annotateSink) ThreadEnd(profile.Instant, profile.Thread)   {}
func (s *annotateSink) Tick(profile.Instant, int)                   {}
