//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/diagnose"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/output/requests"
	"goprof/profile"
	"goprof/sampler/guard"
	"goprof/session"
)

const slowHelp = `slow shows the requests that took longest, and what each spent its time in: computing, waiting for a
lock, for a socket, for a CPU. Then it says what slow requests spend more time in than the others.

Requests are traces, where the program publishes for which trace each thread works (docs/spans.md).
Elsewhere --per METHOD makes them: a request is the time for which a thread has a frame that fits the
expression. Requests of one thread that follow one another within one look count as one then.

Of a JVM slow records wall-clock time, and reads now and then which thread has the locks that others
wait for, and which peers. FILE is a JFR file of goprof record --mode wall, which does not have that; or
of --event off-cpu --wakers, which has the waits alone, and which thread gave the lock back.`

const slowExample = `  goprof slow 1234 -d 1m
  goprof slow 1234 -d 1m --per 'shop[.]Api[.]handle'
  goprof record --pid 1234 -d 10m --mode wall -o x.jfr && goprof slow x.jfr --over 500ms
  goprof record --pid 1234 -d 1m --event off-cpu --wakers --min 1ms -o w.jfr && goprof slow w.jfr
  goprof slow x.jfr --trace 4bf92f3577b34da6a3ce929d0e0e4736`

// slowFlags are the flags of slow as given.
type slowFlags struct {
	method, trace string
	over          time.Duration
	top           int
	json          bool
	in            inputFlags
	published     bool // the program publishes the trace that each thread works for
	jvm           oneJVM
	duration      time.Duration
	rate          float64
}

func newSlow() *cobra.Command {
	f := slowFlags{duration: 30 * time.Second}
	cmd := &cobra.Command{
		Use:     "slow {PID | NAME | --ns-pid PID [NAME] | FILE}",
		Short:   "Show the slowest requests, and what each of them waited for",
		Long:    slowHelp,
		Example: slowExample,
		Args:    atMostOne,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.jvm.addFlags(cmd)
	fs.VarP(asTime(&f.duration), "duration", "d", "of a JVM: record for this `time`")
	fs.Float64Var(&f.rate, "rate", 50, "of a JVM: looks a second at each thread, in `Hz`")
	fs.StringVar(&f.method, "per", "", "a request is what a thread does below a frame that `regex` fits")
	fs.Var(asTime(&f.over), "over", "show requests that took longer than this `time` (default: the longest)")
	fs.StringVar(&f.trace, "trace", "", "show the request with this trace `id`")
	fs.IntVar(&f.top, "top", 10, "show so `many`")
	fs.BoolVar(&f.json, "json", false, "write JSON")
	fs.Var(asTime(&f.in.from), "from", "of a file: leave out what was earlier than this `time` after its start: 10s")
	fs.Var(asTime(&f.in.to), "to", "of a file: leave out what was later than this `time` after its start")
	fs.StringVar(&f.in.thread, "thread", "", "of a file: only threads that `regex` finds in \"name tid=N\"")
	return cmd
}

func (f *slowFlags) run(cmd *cobra.Command, args []string) error {
	var method *regexp.Regexp
	var err error
	switch {
	case f.top < 1:
		return usageError(cmd, "--top is 1 or more", without("top"))
	case f.method != "" && f.trace != "":
		return usageError(cmd, "--per and --trace exclude each other", without("per"))
	case f.method != "":
		if method, err = regexp.Compile(f.method); err != nil {
			return usageError(cmd, "--per: "+err.Error(), without("per"))
		}
	}
	g := requests.New(method)
	r := &requests.Report{By: "trace"}
	if f.method != "" {
		r.By, r.Methods = f.method, true
	}
	if len(args) == 1 && isRecording(args[0]) {
		err = f.read(cmd, args[0], g, r)
	} else {
		err = f.record(cmd, args, g, r)
	}
	if err != nil {
		return err
	}
	r.All, r.Left, r.Interval = g.Requests(), g.Left, g.Interval()
	if err := f.choose(strings.Join(args, " "), g, r); err != nil {
		return err
	}
	return writeResult(cmd, outfile.Stdout, inForm(f.json, r.JSON, r.Text))
}

// ofFile and ofJVM are flags for a file only and for a live JVM only.
var ofFile, ofJVM = []string{"from", "to", "thread"}, []string{"pid", "ns-pid", "duration", "rate"}

// read takes the samples from a file.
func (f *slowFlags) read(cmd *cobra.Command, name string, g *requests.Gatherer, r *requests.Report) error {
	if given := givenOf(cmd, ofJVM); len(given) > 0 {
		return usageError(cmd, "--"+given[0]+" is for a JVM, and "+name+" is a file", without(given[0]))
	}
	in, err := f.in.open(cmd, name)
	if err != nil {
		return err
	}
	defer in.Close()
	in.notes(cmd)
	info := in.src.Info()
	r.Duration = info.Meta.Duration
	f.published = info.Summary != nil && info.Summary.Links != nil
	if !info.Timed || !info.States {
		return &exit.Error{Code: exit.BadInput, What: in.name + " does not say what threads did at which time",
			Remedy: "goprof record --pid PID -d 1m --mode wall -o wall.jfr"}
	}
	err = in.src.Each(func(s *profile.Sample) error {
		g.Sample(s)
		return nil
	})
	if err != nil {
		return exit.CannotRead(in.name, err)
	}
	r.Waits = info.Meta.Mode == profile.ModeOffCPU
	if g.LacksHolders() {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: who had the locks is not in %s\n   try: goprof record --pid PID -d 1m "+
			"--event off-cpu --wakers -o x.jfr\n", in.name)
	}
	return nil
}

// choose decides which requests are slow.
func (f *slowFlags) choose(of string, g *requests.Gatherer, r *requests.Report) error {
	switch {
	case len(r.All) == 0 && f.method != "":
		return &exit.Error{Code: exit.General, What: "no sample has a frame that --per fits",
			Why: "names are like com.shop.Api.handle, and the expression is Go's", Remedy: "goprof slow " + of + " --per handle"}
	case len(r.All) == 0 && f.published:
		return &exit.Error{Code: exit.NoSamples, What: "no sample belongs to a trace",
			Why:    "the program publishes traces, and no thread worked for one in this time",
			Remedy: "goprof slow " + of + " --per METHOD"}
	case len(r.All) == 0:
		return &exit.Error{Code: exit.General, What: "no sample belongs to a trace",
			Why:    "the program does not publish for which trace its threads work (docs/spans.md)",
			Remedy: "goprof slow " + of + " --per METHOD"}
	case f.trace != "":
		for i := range r.All {
			if r.All[i].Trace == f.trace {
				r.All, r.Slow = append(r.All[i:i+1:i+1], append(r.All[:i:i], r.All[i+1:]...)...), 1
				return nil
			}
		}
		return &exit.Error{Code: exit.General, What: fmt.Sprintf("no sample has the trace %q", f.trace),
			Remedy: "goprof slow " + of}
	}
	for r.Slow < min(f.top, len(r.All)) && (f.over == 0 || r.All[r.Slow].For > f.over) {
		r.Slow++
	}
	return nil
}

// isRecording reports whether an argument is a file. A number is a process.
func isRecording(arg string) bool {
	if _, err := strconv.Atoi(arg); err == nil {
		return false
	}
	info, err := os.Stat(arg)
	return arg == "-" || err == nil && !info.IsDir()
}

// record takes the samples from a new wall-clock recording.
func (f *slowFlags) record(cmd *cobra.Command, args []string, g *requests.Gatherer, r *requests.Report) error {
	guard.Enter(guard.ToWatch)
	pid, err := f.jvm.find(cmd, args)
	if err != nil {
		return err
	}
	if given := givenOf(cmd, ofFile); len(given) > 0 {
		return usageError(cmd, "--"+given[0]+" is for a file", without(given[0]))
	}
	if !(f.rate >= 1 && f.rate <= 1000) {
		return usageError(cmd, "--rate is between 1 and 1000 Hz", without("rate"))
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	defer session.StopAfterSuspend()()
	s, err := attach(cmd, pid, true)
	if err != nil {
		return err
	}
	defer s.Close()
	if why, remedy := diagnose.StandsStill(s); why != "" {
		what := fmt.Sprintf("no requests of process %d", pid)
		return &exit.Error{Code: exit.NoSamples, What: what, Why: why, Remedy: remedy}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "goprof: looking at the threads of process %d for %s; Ctrl-C ends it\n", pid,
		f.duration)
	holds := watchLocks(ctx, cmd.ErrOrStderr(), pid)
	_, sum, err := s.Record(ctx, session.RecordOptions{Mode: session.WallMode, Engine: session.PtraceEngine,
		Duration: f.duration, Interval: intervalOf(f.rate), LeaveIdle: true,
		MaxOverhead: 0.01, Sink: toRequests{g}})
	g.Holds(holds())
	if err != nil {
		return exit.CannotLook(pid, err)
	}
	tellQuality(cmd.ErrOrStderr(), &sum)
	r.Duration = sum.Meta.Duration
	f.published = sum.Links != nil
	return nil
}

// tellQuality shows the doubts about a recording that is not kept.
func tellQuality(talk io.Writer, sum *profile.Summary) {
	q, doubts := sum.Judge()
	for _, d := range doubts {
		fmt.Fprintf(talk, "goprof: %s: %s\n", q, output.Printable(d.Why))
	}
}

// toRequests is a Sink that gathers requests.
type toRequests struct{ *requests.Gatherer }

func (toRequests) Begin(profile.Instant, profile.Meta)         {}
func (toRequests) ThreadStart(profile.Instant, profile.Thread) {}
func (toRequests) ThreadEnd(profile.Instant, profile.Thread)   {}
func (toRequests) Tick(profile.Instant, int)                   {}
