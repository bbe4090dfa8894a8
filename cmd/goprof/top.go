//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/topscreen"
	"goprof/cmd/goprof/terminal"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/output/top"
	"goprof/profile/redact"
	"goprof/sampler/guard"
	"goprof/session"
)

const topHelp = `top shows a JVM in the terminal, once a second:
  - its threads, with CPU, allocation, state and topmost Java method
  - the methods that ran in the last seconds
  - the collector, and how much of each pool is used
  - what goprof itself costs

A thread at rest is not stopped. It is looked at once, after it has moved. Threads that use CPU time
are sampled as "goprof record" does, at a modest rate. The JVM itself counts what each thread
allocates.

Keys:
  c a n s   sort the threads by CPU, allocation, name or state
  /         filter the threads
  space     freeze the screen
  Enter     show the stack of the selected thread
  d         write a dump of all threads to a file
  r         begin a recording, or end it
  ?         show all keys
  q         quit

--once takes one reading and ends. It writes a table, or with --json
  {"threads":[{"tid","name","state","cpu","frame","alloc_rate"}],"methods":[{"name","self","total"}],
   "pools":[{"name","busy","count","queued"}]}
  cpu           1 is one CPU all the time
  alloc_rate    bytes a second; null if it is not known
  self, total   shares of the samples of CPU time, 0 to 1`

const topExample = `  goprof top 1234                             or --pid 1234
  goprof top petclinic                        the JVM with that in its main class or jar
  goprof top 1234 --window 60s                methods of the last minute
  goprof top 1234 --once                      one reading as a table
  goprof top 1234 --once --redact default     pseudonyms in place of names
  goprof top 1234 --once -d 5s --json | jq '.threads[] | select(.cpu > 0.5)'`

// topFlags are the flags of top as given.
type topFlags struct {
	jvm oneJVM
	topscreen.Options
	once, json bool
	redactFlags
}

const (
	topInterval    = time.Second
	topMinInterval = 100 * time.Millisecond
	topMaxInterval = time.Hour
	topWindow      = 10 * time.Second
	topMaxWindow   = time.Hour
	// topRate is the number of samples per second of CPU time for a screen. topOnceRate is for a single reading, which
	// has less time.
	topRate, topOnceRate = 20, 100
)

func newTop() *cobra.Command {
	f := topFlags{Options: topscreen.Options{Interval: topInterval, Window: topWindow}}
	cmd := &cobra.Command{
		Use:     "top {PID | NAME | --ns-pid PID [NAME]}",
		Short:   "Watch a JVM's threads and methods in the terminal",
		Long:    topHelp,
		Example: topExample,
		Args:    atMostOne,
	}
	cmd.RunE = f.runs(f.run, &stdout)
	fs := cmd.Flags()
	fs.SortFlags = false
	f.jvm.addFlags(cmd)
	fs.VarP(asTime(&f.Interval), "interval", "i", "`time` between two readings; of --once, how long it looks")
	fs.VarP(asTime(&f.Duration), "duration", "d", "end after so much `time`; of --once, how long it looks (1s)")
	fs.Var(asTime(&f.Window), "window", "`time` over which methods are summed up")
	fs.Float64VarP(&f.Rate, "rate", "r", topRate, "samples for each second of CPU time, in `Hz` (with --once 100)")
	fs.BoolVar(&f.once, "once", false, "take one reading and end; needs no terminal")
	fs.BoolVar(&f.json, "json", false, "with --once: write JSON")
	fs.StringVarP(&f.Output, "output", "o", "",
		"`file` of recordings that r begins; the ending of its name chooses the format (top-%p-%t.jfr)")
	fs.BoolVar(&f.RawNames, "raw-names", false, rawNamesUsage)
	f.redactFlags.add(cmd)
	return cmd
}

func (f *topFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	if why := noScreen(); why != "" && !f.once {
		return &exit.Error{Code: exit.General, What: "cannot show the screen", Why: why,
			Remedy: exit.CommandLine(with("once", "")(cmd, os.Args))}
	}
	pid, err := f.jvm.find(cmd, args)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	if f.once {
		defer watchOver()()
	} else {
		if !terminal.AwaitForeground() {
			return &exit.Error{Code: exit.General, What: "cannot show the screen", Why: "goprof runs in the background",
				Remedy: "fg"}
		}
		defer session.StartWatchdog(watchdogName, watchdogTerminal+terminal.Modes())()
	}
	// no more programs are started that would inherit the score
	goFirst()
	session.LetSysmonRest()
	guard.Enter(guard.ToRecord)
	long := cmp.Or(f.Duration, f.Interval) // of --once
	if f.Version = version(); f.once {
		f.Window = 2*long + time.Second
	}
	w, err := topscreen.Open(pid, f.Options)
	if err != nil {
		return err
	}
	defer w.Close()
	exit.Doubts{}.Warn(cmd.ErrOrStderr(), w.Doubts())
	if !f.once {
		return w.Show(ctx, stop, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	r, err := w.Once(ctx, long)
	if err != nil {
		return exit.CannotLook(pid, err)
	}
	if f.by != nil {
		redactReading(r, f.by)
	}
	return writeResult(cmd, outfile.Stdout, func(to io.Writer) error {
		if f.json {
			return top.JSON(to, r)
		}
		return top.Text(to, r)
	})
}

// redactReading removes names from a reading.
func redactReading(r *top.Reading, by *redact.Redactor) {
	r.Main, r.JVM = by.Program(r.Main), by.Version(r.JVM)
	for i := range r.Threads {
		t := &r.Threads[i]
		t.Name, t.State, t.Frame = by.ThreadName(t.Name), by.Text(t.State), by.Label(t.Frame)
	}
	for i := range r.Methods {
		r.Methods[i].Name = by.Label(r.Methods[i].Name)
	}
	for i := range r.Pools {
		r.Pools[i].Name = by.ThreadName(r.Pools[i].Name)
	}
}

func (f *topFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	within := func(name string, d, least, most time.Duration) error {
		if d < least || d > most {
			return usageError(cmd, fmt.Sprintf("--%s is between %v and %v", name, least, most), without(name))
		}
		return nil
	}
	switch {
	case f.json && !f.once:
		return usageError(cmd, "--json is for --once: the screen is for people", with("once", ""))
	case f.policy != "" && !f.once:
		return usageError(cmd, "--redact is for --once: the screen is for those who may see all", with("once", ""))
	case f.once && f.Output != "":
		return usageError(cmd, "--output is for recordings that the key r begins, and --once has no keys",
			without("output"))
	case f.once && changed("window"):
		return usageError(cmd,
			"--window is for the screen: with --once methods are of the time that it looks, see --duration",
			without("window"))
	case f.once && changed("interval") && changed("duration"):
		return usageError(cmd, "with --once, --interval and --duration say the same: give one", without("interval"))
	}
	if f.Output != "" {
		if _, err := format.Of(f.Output, ""); err != nil {
			return usageError(cmd, "--output: "+err.Error(), without("output"))
		}
		if f.Output == outfile.Stdout {
			return usageError(cmd, "--output: standard output is for the screen", without("output"))
		}
	}
	if !changed("rate") && f.once {
		f.Rate = topOnceRate
	}
	if err := checkHz(cmd, f.Rate); err != nil {
		return err
	}
	if err := within("interval", f.Interval, topMinInterval, topMaxInterval); err != nil {
		return err
	}
	if changed("duration") {
		if err := within("duration", f.Duration, topMinInterval, 24*time.Hour); err != nil {
			return err
		}
	}
	return within("window", f.Window, topMinInterval, topMaxWindow)
}

// noScreen returns why there can be no screen, or "".
func noScreen() string {
	switch {
	case !isTerminal(os.Stdin, os.Stdout):
		return "standard input or output is no terminal"
	case os.Getenv("TERM") == "dumb":
		return "TERM=dumb is a terminal that cannot move its cursor"
	}
	return ""
}

// isTerminal reports whether all files are terminals.
func isTerminal(files ...*os.File) bool {
	for _, file := range files {
		if !term.IsTerminal(int(file.Fd())) {
			return false
		}
	}
	return true
}
