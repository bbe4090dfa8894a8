//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/recorder"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/sampler/guard"
	"goprof/session"
)

var recordHelp = `record samples the stacks of a running JVM. The output's name says what is written:

` + formatTable() + `
Without -o the file is out.collapsed: a line "root;caller;leaf count" for each different stack, where
the count is samples. JFR is written while goprof records: whatever ends goprof, the file is whole up
to its last chunk. JFR, pprof, speedscope and Firefox keep every thread; JFR and Firefox also the time
of every sample.

A sample is one look at a thread that uses CPU time: its registers and stack are copied within a few
microseconds. Samples are proportional to CPU time: at 100 Hz one for each 10 ms. Threads that
sleep are not stopped.

With --weight cpu the count is nanoseconds of CPU time: the time that the kernel has charged a thread
since its last sample. The sum is what the process has used. "[not sampled]" is the time of threads
that were never seen after they had used it, "[exited threads]" that of threads that had ended.

` + engineHelp + `

` + modeHelp + `

` + eventHelp + `

` + waitHelp + `

To choose the JVM: --pid, several times for several; or NAME, a part of its main class or jar
("goprof list" shows them); or --wait NAME, to wait for one; or a program to start, after "--".

The account of the run goes into FILE.summary.json beside FILE.collapsed, or into the file that
--summary names. Pages and JFR files contain it; other formats have one only with --summary. Without
a sample goprof writes no stacks and exits with 7.

With --loop a new file begins each time; %t in its name is that time. --keep deletes older files of
this run.

Without -d goprof records until Ctrl-C, or until the JVM ends, and then writes. SIGUSR1 writes what
there is and goes on. goprof never ends a program that it has started.`

const recordExample = `  goprof record --pid 1234 -d 30s              into out.collapsed, or out.1.collapsed ...
  goprof record petclinic -d 30s               the JVM with that in its main class or jar
  goprof record --pid 1234 -d 5m -r 1000 -t    1,000 Hz, stacks split by thread
  goprof record --pid 1234 -d 1m --thread '^http-' --exclude-thread 'acceptor|tid=4711$'
  goprof record --pid 1234 -d 1m --weight cpu  nanoseconds of CPU time, not samples
  goprof record --pid 1234 -d 1m --engine auto no stops, where the kernel's perf_event may be used
  goprof record --pid 1234 -d 1m --mode wall -t   what each thread did, and waited for
  goprof record --pid 1234 -d 1m --event ttsp -o ttsp.html    who keeps safepoints waiting
  goprof record --pid 1234 -d 1m --event lock -o lock.html     time that threads wait for locks
  goprof record --pid 1234 -d 1m --event off-cpu --min 1ms     every wait of a millisecond and more
  goprof record --pid 1234 -d 1m --event off-cpu --wakers -o wakers.html    and what ended each
  goprof record --pid 1234 -d 1m --event off-cpu --chain -o chain.html      and who had woken the waker
  goprof record --pid 1234 -d 1m --event alloc -o alloc.html   who allocates what, by bytes
  goprof record --pid 1234 -d 1m --event exceptions            who throws what; every one is counted
  goprof record --pid 1234 -d 1m --event io -o io.jfr          files and peers that are read and written
  goprof record --pid 1234 -d 1m --event libc:write            any function of a native library
  goprof record --pid 1234 -d 1m --event cpu,alloc,lock -o x.jfr   all of it in one file
  goprof record --pid 1234 -d 10s -o - | head  to standard output
  goprof record --pid 1234 -o prof-%p-%t.collapsed --summary sum.json
  goprof record --pid 1234 -d 1m -o now.html   the flame graph at once
  goprof record --pid 1234 -o run.jfr --redact default   pseudonyms in place of names
  goprof record --pid 1234 -o run.jfr          each sample with its time: JMC, IntelliJ, goprof convert
  goprof record --pid 1234 -o run.jfr --jvm-events   and the JVM's collections, for JMC's pages and rules
  goprof record --pid 1234 -o day-%t.jfr --loop 10m --keep 6   always the last hour
  goprof record --wait petclinic -d 1m         from its start
  goprof record -- java -jar app.jar           start it, record it whole`

// recordFlags are the flags of record. Options are those for the recorder, and all holds the options of all parts.
type recordFlags struct {
	recorder.Options
	all         session.RecordOptions
	pids        []int
	nsPID       int
	wait        string
	rate        float64
	wants       threadFilter
	weight      string
	leaf        string
	maxOverhead float64
	format      string
	redactFlags
	engineFlag
	modeFlags
	eventFlags
}

func newRecord() *cobra.Command { return new(recordFlags).command() }

func (f *recordFlags) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "record {PID | NAME | --pid PID... | --ns-pid PID [NAME] | --wait NAME | -- PROGRAM ARG...}",
		Short:   "Sample a JVM's stacks into a file",
		Long:    recordHelp,
		Example: recordExample,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	cmd.ValidArgsFunction = completeRecord
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntSliceVarP(&f.pids, "pid", "p", nil, "`PID` of the JVM; may be given several times")
	addInner(cmd, &f.nsPID)
	fs.StringVar(&f.wait, "wait", "", "wait for a JVM with `NAME` in its main class or jar")
	fs.VarP(asTime(&f.Duration), "duration", "d",
		"record for so much `time`: 30s, 2.5s, 5m or plain seconds (until Ctrl-C)")
	fs.Float64VarP(&f.rate, "rate", "r", 100,
		"samples for each second of CPU time, in `Hz`, up to 10,000; in modes wall and off-cpu, looks at each thread a "+
			"second (20)")
	fs.DurationVarP(&f.all.Interval, "interval", "i", 0, "CPU `time` between two samples, instead of --rate: 10ms")
	fs.StringVar(&f.weight, "weight", profile.Samples.String(),
		"count stacks in `what`: samples, cpu (nanoseconds of CPU time) or time (nanoseconds, in modes wall and off-cpu)")
	f.addMode(fs)
	f.engineFlag.add(cmd, fs)
	f.addEvent(fs)
	f.addWaits(fs)
	fs.BoolVarP(&f.all.Threads, "threads", "t", false, "begin each stack with its thread: [name tid=N]")
	f.wants.add(fs)
	fs.BoolVar(&f.all.GroupThreads, "group-threads", false, "as --threads, but "+groupThreadsUsage)
	fs.BoolVar(&f.all.HideInternal, "hide-internal", false, hideInternalUsage)
	fs.BoolVar(&f.RawNames, "raw-names", false, rawNamesUsage)
	fs.StringVar(&f.leaf, "leaf", leafBest,
		"the inlined method on top: `best` (the likeliest), or sure (where it is a guess, the compiled method around it)")
	fs.IntVar(&f.all.Depth, "depth", 2048, "`frames` that a stack may have; deeper ones are cut at the root and say so")
	fs.Float64Var(&f.maxOverhead, "max-overhead", 0,
		"`percent` of CPU time that pauses may cost, or with --event goprof itself; above that, the rate is lowered "+
			"(0: any)")
	fs.StringVarP(&f.Files.Output, "output", "o", "",
		"`file`, whose ending chooses the format; - is standard output, %p the pid, %t the time (out.collapsed, numbered)")
	fs.StringVarP(&f.format, "format", "f", "",
		"write this `format`, whatever the file's name is: "+strings.Join(format.Names(), ", "))
	fs.StringVar(&f.Files.Summary, "summary", "",
		"`file` for the account of the run as JSON (beside collapsed output, else none)")
	addOpen(fs)
	fs.Var(asTime(&f.Loop), "loop", "begin a new file each `time`: 10m. Its name gets %t, if it has none")
	fs.IntVar(&f.Keep, "keep", 0, "with --loop: keep the newest `n` files of this run, and delete older ones (0: all)")
	fs.BoolVar(&f.JVMEvents, "jvm-events", false,
		"with JFR: add the JVM's collections, safepoints, compilations and code cache as events of the JDK")
	fs.DurationVar(&f.Files.Chunk, "chunk", maxChunk,
		"with JFR: write to the disk each `time`; a crash loses no more than that")
	f.redactFlags.add(cmd)
	fs.BoolVarP(&f.Quiet, "quiet", "q", false, "no progress, and no account at the end")
	fs.BoolVarP(&f.Verbose, "verbose", "v", false, "add to the account all that is known of how it was made")
	cmd.RegisterFlagCompletionFunc("pid", completePIDs)
	for name, values := range map[string][]string{"weight": {"samples", "cpu", "time"}, "format": format.Names(),
		"leaf": {leafBest, leafSure}, "mode": modes, "state": profile.StateNames()} {
		completeFrom(cmd, name, values)
	}
	return cmd
}

// The values of --leaf.
const leafBest, leafSure = "best", "sure"

const (
	maxRate     = 10_000
	minInterval = time.Second / maxRate
	maxInterval = time.Hour
	minChunk    = time.Second
	maxChunk    = time.Minute
)

func (f *recordFlags) run(cmd *cobra.Command, args []string) error {
	var err error
	if err = f.check(cmd); err != nil {
		return err
	}
	if err := f.prepare(cmd, f.Files.Output, f.Files.Summary); err != nil {
		return err
	}
	f.Files.By = f.by
	which, err := f.choose(cmd, args)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	now := make(chan os.Signal, 1)
	signal.Notify(now, syscall.SIGUSR1)
	defer signal.Stop(now)
	if which.program != nil {
		if _, err := f.Files.Reserve(0); err != nil { // before anything is started
			return exit.CannotWrite(err)
		}
		if err := which.program.launch(); err != nil {
			return err
		}
	}
	defer watchOver()()
	// Programs that would inherit the score are already started. The guard needs all OS threads, and none hangs in a
	// read yet.
	goFirst()
	session.LetSysmonRest()
	given := guard.Enter(f.rights())
	talk := cmd.ErrOrStderr()
	if given.AdminForPerf && f.Verbose {
		exit.TellNotes(talk, []profile.Note{exit.Host().AdminNote()})
	}
	targets, err := which.find(ctx, talk)
	if err != nil {
		return err
	}
	makeRoom(len(targets) * len(f.Parts))
	f.Show = theOpener.open
	err = recorder.All(ctx, talk, &f.Options, targets, now)
	if mapErr := f.writeMap(); err == nil {
		err = mapErr
	}
	stop() // from now on a signal ends goprof at once
	which.finish(talk)
	return err
}

// check checks the flags, and fills Options.
func (f *recordFlags) check(cmd *cobra.Command) (err error) {
	if err := f.toMode(cmd); err != nil {
		return err
	}
	weight, err := profile.ParseWeight(f.weight)
	if err != nil {
		return usageError(cmd, fmt.Sprintf("--weight is samples, cpu or time, not %q", f.weight), without("weight"))
	}
	if err := f.checkMode(cmd, weight); err != nil {
		return err
	}
	if f.all.Wants, err = f.wants.check(cmd); err != nil {
		return err
	}
	overhead := f.maxOverhead
	if f.event != "" || f.alloc != "" {
		overhead = 0 // perf takes the samples of events, and goprof thins them out
	}
	if err := f.engineFlag.check(cmd, f.mode, overhead); err != nil {
		return err
	}
	if f.leaf != leafBest && f.leaf != leafSure {
		return usageError(cmd, fmt.Sprintf("--leaf is best or sure, not %q", f.leaf), without("leaf"))
	}
	if err := f.checkOutput(cmd); err != nil {
		return err
	}
	if err := f.checkEvent(cmd); err != nil {
		return err
	}
	if err := checkDepth(cmd, f.all.Depth); err != nil {
		return err
	}
	if !(f.maxOverhead >= 0 && f.maxOverhead <= 100) {
		return usageError(cmd, "--max-overhead is a percentage, between 0 and 100", without("max-overhead"))
	}
	if f.Files.Summary != "" && filepath.Clean(f.Files.Summary) == filepath.Clean(f.Files.Output) {
		return usageError(cmd, "--output and --summary are the same file", without("summary"))
	}
	if err := f.checkNames(); err != nil {
		return usageError(cmd, err.Error(), with("output", "prof-%p.collapsed"), without("summary"))
	}
	if err := f.checkRate(cmd); err != nil {
		return err
	}
	f.all.Threads = f.all.Threads || f.all.GroupThreads
	f.all.SureLeaf, f.all.MaxOverhead = f.leaf == leafSure, f.maxOverhead/100
	f.ExplainEngine = f.engineGiven
	f.Files.Version, f.Files.Several, f.Files.Loop = version(), len(f.pids) > 1, f.Loop > 0
	f.Parts = f.parts(weight)
	return nil
}

// checkRate sets the time between two samples.
func (f *recordFlags) checkRate(cmd *cobra.Command) error {
	if cmd.Flags().Changed("interval") {
		if cmd.Flags().Changed("rate") {
			return usageError(cmd, "--rate and --interval say the same: give one", without("rate"))
		}
		if f.all.Interval < minInterval || f.all.Interval > maxInterval {
			return usageError(cmd, fmt.Sprintf("--interval is between %v and %v", minInterval, maxInterval),
				with("interval", "10ms"))
		}
		return nil
	}
	if !cmd.Flags().Changed("rate") {
		f.rate = usualRate(session.Mode(f.mode), f.rate)
	}
	if err := checkHz(cmd, f.rate); err != nil {
		return err
	}
	f.all.Interval = intervalOf(f.rate)
	return nil
}

// checkHz checks the value of --rate.
func checkHz(cmd *cobra.Command, rate float64) error {
	if !(rate > 0 && rate <= maxRate) || rate < 1/maxInterval.Seconds() {
		return usageError(cmd, fmt.Sprintf("--rate is above 0 and at most %d Hz", maxRate), without("rate"))
	}
	return nil
}

// intervalOf returns the time between two samples at a rate.
func intervalOf(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }

// checkOutput finds the format, by -f or by the file's name.
func (f *recordFlags) checkOutput(cmd *cobra.Command) (err error) {
	if f.format == "" {
		if err := asprofOutput(cmd, f.Files.Output, os.Args); err != nil {
			return err
		}
	}
	if f.Files.As, err = format.Of(cmp.Or(f.Files.Output, outfile.Stdout), f.format); err != nil {
		if f.format != "" {
			if err := asprofFile(cmd, f.format, os.Args); err != nil {
				return err
			}
			return usageError(cmd, "--format: "+err.Error(), without("format"))
		}
		return usageError(cmd, "--output: "+err.Error(), with("output", "out.jfr"))
	}
	if f.Files.Chunk < minChunk || f.Files.Chunk > maxChunk {
		return usageError(cmd, fmt.Sprintf("--chunk is between %v and %v", minChunk, maxChunk), without("chunk"))
	}
	switch {
	case f.Files.As != format.JFR && cmd.Flags().Changed("chunk"):
		return usageError(cmd, fmt.Sprintf("--chunk is for jfr; %s is written at the end", f.Files.As), without("chunk"))
	case f.all.GroupThreads && f.Files.As.Parts():
		return usageError(cmd, fmt.Sprintf("--group-threads is for collapsed, html, svg and json; "+
			"%s has each sample's thread", f.Files.As), without("group-threads"))
	}
	if err := checkOpen(cmd, f.Files.Output, f.Files.As); err != nil {
		return err
	}
	if len(f.pids) > 1 && cmd.Flags().Changed("open") {
		return usageError(cmd, "--open shows one file, and each JVM has one", without("open"))
	}
	switch {
	case f.JVMEvents && f.Files.As != format.JFR:
		return usageError(cmd, fmt.Sprintf("--jvm-events is for jfr; %s has no room for them", f.Files.As),
			with("output", "out.jfr"))
	case f.Loop != 0 && f.Loop < minLoop:
		return usageError(cmd, fmt.Sprintf("--loop is %v or more", minLoop), with("loop", "10m"))
	case f.Keep < 0:
		return usageError(cmd, "--keep is how many files to keep, 0 for all", without("keep"))
	case f.Keep > 0 && f.Loop == 0:
		return usageError(cmd, "--keep is for --loop, which makes more than one file", with("loop", "10m"))
	}
	return nil
}

// minLoop keeps file names different, because the times in them have seconds.
const minLoop = time.Second

// checkNames makes sure that each JVM has its own file.
func (f *recordFlags) checkNames() error {
	if len(f.pids) < 2 {
		return nil
	}
	for _, name := range []string{f.Files.Output, f.Files.Summary} {
		if name != "" && !strings.Contains(strings.ReplaceAll(name, "%%", ""), "%p") {
			return errors.New("several JVMs need a file each: -o prof-%p.collapsed")
		}
	}
	return nil
}
