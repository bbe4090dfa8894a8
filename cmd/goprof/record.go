//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/profile"
	"goprof/sampler/session"
)

const recordHelp = `record samples the stacks of a running JVM and writes them as collapsed stacks: a line
"root;caller;leaf count" for each different stack, the count being samples.

A sample is one thread that was using CPU time, stopped for the few microseconds in which its
registers and stack are copied. Every thread gets as many samples as it used CPU time: at 100 Hz
one for each 10 ms. Threads that sleep are not stopped.

Beside FILE.collapsed it writes FILE.summary.json, the account of the run, unless --summary
names another place for it.

Without -d it records until Ctrl-C, or until the JVM ends; both write what there is.`

const recordExample = `  goprof record --pid 1234 -d 30s              into out.collapsed, or out.1.collapsed ...
  goprof record --pid 1234 -d 5m -r 1000 -t    1,000 Hz, stacks split by thread
  goprof record --pid 1234 -d 10s -o - | head  to standard output
  goprof record --pid 1234 -o prof-%p-%t.collapsed --summary sum.json`

// recordFlags are the flags of record as they were given.
type recordFlags struct {
	pid      int
	duration durationFlag
	rate     float64
	interval time.Duration
	mode     string
	threads  bool
	depth    int
	output   string
	summary  string
	quiet    bool
}

func newRecord() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:     "record --pid PID",
		Short:   "Sample a JVM's stacks into a file",
		Long:    recordHelp,
		Example: recordExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVarP(&f.pid, "pid", "p", 0, "process id of the JVM")
	fs.VarP(&f.duration, "duration", "d", "how long: 30s, 2.5s, 5m or plain seconds (until Ctrl-C)")
	fs.Float64VarP(&f.rate, "rate", "r", 100, "samples for each second of CPU time, up to 10,000")
	fs.DurationVarP(&f.interval, "interval", "i", 0, "CPU time between two samples, instead of --rate: 10ms")
	fs.StringVar(&f.mode, "mode", "cpu", "which threads: cpu, those that use CPU time")
	fs.BoolVarP(&f.threads, "threads", "t", false, "begin each stack with its thread: [name tid=N]")
	fs.IntVar(&f.depth, "depth", 2048, "frames that a stack may have; deeper ones are cut at the root and say so")
	fs.StringVarP(&f.output, "output", "o", "", "file; - is standard output, %p the pid, %t the time (out.collapsed, numbered)")
	fs.StringVar(&f.summary, "summary", "", "where to write the account of the run as JSON (beside the output)")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no account at the end")
	return cmd
}

const (
	maxRate     = 10_000
	minInterval = time.Second / maxRate
	maxInterval = time.Hour
	maxDepth    = 1 << 20
)

func (f *recordFlags) run(cmd *cobra.Command) error {
	interval, err := f.check(cmd)
	if err != nil {
		return err
	}
	out, err := f.reserve()
	if err != nil {
		return outputFailed(err)
	}
	s, err := session.Attach(f.pid)
	if err != nil {
		return attachError(f.pid, err)
	}
	defer s.Close()
	warnMissing(cmd.ErrOrStderr(), s.VM.Missing())

	ctx, stop := interruptible(cmd.Context(), f.duration.Duration)
	defer stop()
	opt := session.RecordOptions{Interval: interval, Depth: f.depth, Threads: f.threads}
	p, sum, err := s.Record(ctx, opt)
	if err != nil && sum.Samples == 0 {
		return attachError(f.pid, err)
	}
	sum.Meta.Version, p.Meta.Version = version(), version()
	if writeErr := f.write(cmd, out, p, &sum); writeErr != nil {
		return writeErr
	}
	if err != nil {
		return attachError(f.pid, err)
	}
	if sum.Samples == 0 {
		return noSamples(f.pid, s, &sum)
	}
	return nil
}

// check validates the flags and returns the interval.
func (f *recordFlags) check(cmd *cobra.Command) (time.Duration, error) {
	if f.pid <= 0 {
		return 0, usageError(cmd, "which JVM? --pid is missing")
	}
	if f.mode != "cpu" {
		return 0, usageError(cmd, fmt.Sprintf("there is no mode %q; there is cpu", f.mode))
	}
	if f.depth < 1 || f.depth > maxDepth {
		return 0, usageError(cmd, fmt.Sprintf("--depth is between 1 and %d", maxDepth))
	}
	if cmd.Flags().Changed("interval") {
		if cmd.Flags().Changed("rate") {
			return 0, usageError(cmd, "--rate and --interval say the same: give one")
		}
		if f.interval < minInterval || f.interval > maxInterval {
			return 0, usageError(cmd, fmt.Sprintf("--interval is between %v and %v", minInterval, maxInterval))
		}
		return f.interval, nil
	}
	if !(f.rate > 0 && f.rate <= maxRate) || f.rate < 1/maxInterval.Seconds() {
		return 0, usageError(cmd, fmt.Sprintf("--rate is above 0 and at most %d Hz", maxRate))
	}
	return time.Duration(float64(time.Second) / f.rate), nil
}

// outputs are the files that a recording ends in. They are checked before it begins.
type outputs struct{ stacks, summary *output.File }

func (f *recordFlags) reserve() (outputs, error) {
	var o outputs
	var err error
	if f.output == "" {
		o.stacks, err = output.ReserveNumbered("out.collapsed")
	} else {
		o.stacks, err = output.Reserve(output.Expand(f.output, f.pid, time.Now()))
	}
	if err == nil && f.summary != "" {
		o.summary, err = output.Reserve(output.Expand(f.summary, f.pid, time.Now()))
	}
	return o, err
}

func (f *recordFlags) write(cmd *cobra.Command, o outputs, p *profile.Profile, sum *profile.Summary) error {
	name, err := o.stacks.Write(func(w io.Writer) error { return output.Collapsed(w, p) })
	if err != nil {
		return outputFailed(err)
	}
	if o.summary == nil && name != output.Stdout {
		// Beside the stacks, where "goprof flame" looks for what it says about them.
		if o.summary, err = output.Reserve(output.SummaryPath(name)); err != nil {
			return outputFailed(err)
		}
	}
	if o.summary != nil {
		if _, err := o.summary.Write(func(w io.Writer) error { return output.WriteSummary(w, sum) }); err != nil {
			return outputFailed(err)
		}
	}
	if f.quiet {
		return nil
	}
	talk := cmd.ErrOrStderr()
	output.SummaryText(talk, sum)
	if name != output.Stdout {
		fmt.Fprintf(talk, "written    %s\n", name)
	}
	return nil
}

// interruptible ends at the first SIGINT or SIGTERM, or after d if that is not 0. The
// second signal ends the process at once: by then the handler is gone.
func interruptible(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if parent == nil {
		parent = context.Background()
	}
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if d == 0 {
		return ctx, stop
	}
	timed, cancel := context.WithTimeout(ctx, d)
	return timed, func() { cancel(); stop() }
}

// warnMissing says once what this JVM does not let us see.
func warnMissing(w io.Writer, missing []string) {
	for _, m := range missing {
		fmt.Fprintf(w, "goprof: this JVM does not tell all: %s\n", m)
	}
}

// noSamples says why a recording is empty.
func noSamples(pid int, s *session.Session, sum *profile.Summary) error {
	e := &exit.Error{Code: exit.NoSamples, What: fmt.Sprintf("no samples of process %d", pid),
		Why:    "all its threads were idle: none used as much CPU time as lies between two samples",
		Remedy: fmt.Sprintf("goprof dump --pid %d shows what they wait for", pid)}
	switch {
	case s.Process.Alive() != nil:
		e.Why, e.Remedy = "it ended before it had used enough CPU time", ""
	case sum.Attempted > 0:
		e.Why = fmt.Sprintf("all %d looks were lost: see the account above", sum.Attempted)
	}
	return e
}
