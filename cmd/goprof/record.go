//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/product"
	"goprof/output"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/profile/redact"
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

type recordFlags struct {
	pids        []int
	nsPID       int
	wait        string
	duration    durationFlag
	rate        float64
	interval    time.Duration
	threads     bool
	wants       threadFilter
	weight      string
	weighed     profile.Weight
	group       bool
	internal    bool // hidden
	rawNames    bool
	leaf        string
	depth       int
	maxOverhead float64
	output      string
	summary     string
	quiet       bool
	verbose     bool
	streams     map[string]*outfile.File // those that are open
	spool       *os.File                 // gets the JFR file, which becomes a part of another file; nil otherwise
	format      string
	as          format.Format
	chunk       time.Duration
	talk        io.Writer
	by          *redact.Redactor // nil: all names may be shown
	byLock      sync.Mutex       // held while by is used: several JVMs may be recorded
	redactFlags
	loopFlags
	jvmEventFlags
	engineFlag
	modeFlags
	eventFlags
	waitFlags
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
	fs.VarP(&f.duration, "duration", "d", "record for so much `time`: 30s, 2.5s, 5m or plain seconds (until Ctrl-C)")
	fs.Float64VarP(&f.rate, "rate", "r", 100,
		"samples for each second of CPU time, in `Hz`, up to 10,000; in modes wall and off-cpu, looks at each thread a "+
			"second (20)")
	fs.DurationVarP(&f.interval, "interval", "i", 0, "CPU `time` between two samples, instead of --rate: 10ms")
	fs.StringVar(&f.weight, "weight", profile.Samples.String(),
		"count stacks in `what`: samples, cpu (nanoseconds of CPU time) or time (nanoseconds, in modes wall and off-cpu)")
	f.modeFlags.add(fs)
	f.engineFlag.add(cmd, fs)
	f.eventFlags.add(fs)
	f.waitFlags.add(fs)
	fs.BoolVarP(&f.threads, "threads", "t", false, "begin each stack with its thread: [name tid=N]")
	f.wants.add(fs)
	fs.BoolVar(&f.group, "group-threads", false, "as --threads, but "+groupThreadsUsage)
	fs.BoolVar(&f.internal, "hide-internal", false, hideInternalUsage)
	fs.BoolVar(&f.rawNames, "raw-names", false, rawNamesUsage)
	fs.StringVar(&f.leaf, "leaf", leafBest,
		"the inlined method on top: `best` (the likeliest), or sure (where it is a guess, the compiled method around it)")
	fs.IntVar(&f.depth, "depth", 2048, "`frames` that a stack may have; deeper ones are cut at the root and say so")
	fs.Float64Var(&f.maxOverhead, "max-overhead", 0,
		"`percent` of CPU time that pauses may cost, or with --event goprof itself; above that, the rate is lowered "+
			"(0: any)")
	fs.StringVarP(&f.output, "output", "o", "",
		"`file`, whose ending chooses the format; - is standard output, %p the pid, %t the time (out.collapsed, numbered)")
	fs.StringVarP(&f.format, "format", "f", "",
		"write this `format`, whatever the file's name is: "+strings.Join(format.Names(), ", "))
	fs.StringVar(&f.summary, "summary", "",
		"`file` for the account of the run as JSON (beside collapsed output, else none)")
	addOpen(fs)
	f.loopFlags.add(fs)
	f.jvmEventFlags.add(fs)
	fs.DurationVar(&f.chunk, "chunk", maxChunk,
		"with JFR: write to the disk each `time`; a crash loses no more than that")
	f.redactFlags.add(cmd)
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress, and no account at the end")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "add to the account all that is known of how it was made")
	cmd.RegisterFlagCompletionFunc("pid", completePIDs)
	for name, values := range map[string][]string{"weight": {"samples", "cpu", "time"}, "format": format.Names(),
		"leaf": {leafBest, leafSure}, "mode": modes, "state": profile.StateNames()} {
		completeFrom(cmd, name, values)
	}
	return cmd
}

// What --leaf may say.
const leafBest, leafSure = "best", "sure"

const (
	maxRate     = 10_000
	minInterval = time.Second / maxRate
	maxInterval = time.Hour
	maxDepth    = 1 << 20
	minChunk    = time.Second
	maxChunk    = time.Minute
)

func (f *recordFlags) run(cmd *cobra.Command, args []string) error {
	var err error
	if f.interval, err = f.check(cmd); err != nil {
		return err
	}
	if f.by, err = f.redactor(cmd, f.output, f.summary); err != nil {
		return err
	}
	f.talk = cmd.ErrOrStderr()
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
		if _, err := f.reserve(0); err != nil { // before anything is started
			return outputFailed(err)
		}
		if err := which.program.launch(); err != nil {
			return err
		}
	}
	defer session.StopAfterSuspend()()
	defer session.StartWatchdog(watchdogName)()
	// Programs were started before this: they would inherit it. No OS thread hangs in a read yet: each of them has to
	// take part.
	goFirst()
	session.LetSysmonRest()
	given := guard.Enter(f.eventFlags.rights(f.kernel || f.wakers))
	talk := cmd.ErrOrStderr()
	if given.AdminForPerf && f.verbose {
		tellNotes(talk, []profile.Note{host().AdminNote()})
	}
	targets, err := which.find(ctx, talk)
	if err != nil {
		return err
	}
	err = recordAll(ctx, talk, f, targets, now)
	if mapErr := f.writeMap(); err == nil {
		err = mapErr
	}
	stop() // from now on a signal ends goprof, and nothing else
	which.finish(talk)
	return err
}

func (f *recordFlags) check(cmd *cobra.Command) (time.Duration, error) {
	var err error
	if err := f.toMode(cmd); err != nil {
		return 0, err
	}
	if f.timed && !cmd.Flags().Changed("weight") {
		f.weight = profile.WallTime.String()
	}
	if f.weighed, err = profile.ParseWeight(f.weight); err != nil {
		return 0, usageError(cmd, fmt.Sprintf("--weight is samples, cpu or time, not %q", f.weight), without("weight"))
	}
	if err := f.modeFlags.check(cmd, f.weighed); err != nil {
		return 0, err
	}
	if err := f.wants.check(cmd); err != nil {
		return 0, err
	}
	overhead := f.maxOverhead
	if f.event != "" || f.alloc != "" {
		overhead = 0 // perf takes the samples of events, and goprof thins them out
	}
	if err := f.engineFlag.check(cmd, f.mode, overhead); err != nil {
		return 0, err
	}
	if f.leaf != leafBest && f.leaf != leafSure {
		return 0, usageError(cmd, fmt.Sprintf("--leaf is best or sure, not %q", f.leaf), without("leaf"))
	}
	if err := f.checkOutput(cmd); err != nil {
		return 0, err
	}
	if err := f.eventFlags.check(cmd, f); err != nil {
		return 0, err
	}
	if f.depth < 1 || f.depth > maxDepth {
		return 0, usageError(cmd, fmt.Sprintf("--depth is between 1 and %d", maxDepth), without("depth"))
	}
	if !(f.maxOverhead >= 0 && f.maxOverhead <= 100) {
		return 0, usageError(cmd, "--max-overhead is a percentage, between 0 and 100", without("max-overhead"))
	}
	if f.summary != "" && filepath.Clean(f.summary) == filepath.Clean(f.output) {
		return 0, usageError(cmd, "--output and --summary are the same file", without("summary"))
	}
	if err := f.checkNames(); err != nil {
		return 0, usageError(cmd, err.Error(), with("output", "prof-%p.collapsed"), without("summary"))
	}
	if cmd.Flags().Changed("interval") {
		if cmd.Flags().Changed("rate") {
			return 0, usageError(cmd, "--rate and --interval say the same: give one", without("rate"))
		}
		if f.interval < minInterval || f.interval > maxInterval {
			return 0, usageError(cmd, fmt.Sprintf("--interval is between %v and %v", minInterval, maxInterval),
				with("interval", "10ms"))
		}
		return f.interval, nil
	}
	f.rate = f.modeFlags.rate(f.rate, cmd.Flags().Changed("rate"))
	if !(f.rate > 0 && f.rate <= maxRate) || f.rate < 1/maxInterval.Seconds() {
		return 0, usageError(cmd, fmt.Sprintf("--rate is above 0 and at most %d Hz", maxRate), without("rate"))
	}
	return time.Duration(float64(time.Second) / f.rate), nil
}

// checkOutput finds the format, by its name or by that of the file.
func (f *recordFlags) checkOutput(cmd *cobra.Command) (err error) {
	if f.format == "" {
		if err := asprofOutput(cmd, f.output, os.Args); err != nil {
			return err
		}
	}
	if f.as, err = format.Of(cmp.Or(f.output, outfile.Stdout), f.format); err != nil {
		if f.format != "" {
			if err := asprofFile(cmd, f.format, os.Args); err != nil {
				return err
			}
			return usageError(cmd, "--format: "+err.Error(), without("format"))
		}
		return usageError(cmd, "--output: "+err.Error(), with("output", "out.jfr"))
	}
	if f.chunk < minChunk || f.chunk > maxChunk {
		return usageError(cmd, fmt.Sprintf("--chunk is between %v and %v", minChunk, maxChunk), without("chunk"))
	}
	switch {
	case f.as != format.JFR && cmd.Flags().Changed("chunk"):
		return usageError(cmd, fmt.Sprintf("--chunk is for jfr; %s is written at the end", f.as), without("chunk"))
	case f.group && f.as.Parts():
		return usageError(cmd, fmt.Sprintf("--group-threads is for collapsed, html, svg and json; "+
			"%s has each sample's thread", f.as), without("group-threads"))
	}
	if err := checkOpen(cmd, f.output, f.as); err != nil {
		return err
	}
	if len(f.pids) > 1 && cmd.Flags().Changed("open") {
		return usageError(cmd, "--open shows one file, and each JVM has one", without("open"))
	}
	if err := f.jvmEventFlags.check(cmd, f.as); err != nil {
		return err
	}
	return f.loopFlags.check(cmd)
}

func (f *recordFlags) productOptions() product.Options {
	return product.Options{Version: version(), Chunk: f.chunk, Nameless: f.by != nil, Tell: func(note string) {
		if !f.quiet {
			fmt.Fprintf(f.talk, "goprof: %s\n", output.Printable(note))
		}
	}}
}

// checkNames makes sure that each JVM has a file of its own.
func (f *recordFlags) checkNames() error {
	if len(f.pids) < 2 {
		return nil
	}
	for _, name := range []string{f.output, f.summary} {
		if name != "" && !strings.Contains(strings.ReplaceAll(name, "%%", ""), "%p") {
			return errors.New("several JVMs need a file each: -o prof-%p.collapsed")
		}
	}
	return nil
}
