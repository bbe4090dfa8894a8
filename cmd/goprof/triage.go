//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/terminal"
	"goprof/output"
	"goprof/output/findings"
	"goprof/output/flame"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/sampler/guard"
	"goprof/session"
	"goprof/triage"
	"goprof/triage/examine"
)

const triageHelp = `triage looks at a JVM for ten seconds and says what is wrong, the likeliest first. Each finding
comes with its evidence and the next command.

triage records CPU time and what all threads wait for, and takes three dumps. It reads the heap,
collections, safepoints, code cache, classes, files, swap, limits and the machine's load. The JVM
need not answer for any of this, so it may hang or be stopped.

A finding means that a threshold was well passed for the whole time. "Nothing is wrong that can be
seen from outside" means that all rules were judged. The end of the output lists those that could
not be judged.
docs/triage.md says what each finding means, and its threshold.

triage --all looks at all JVMs of the host that goprof may see, and shows the worst first. The exit code
is that of the worst: a JVM that could not be looked at counts if nothing is found in the others.

triage FILE explains a crash file of HotSpot (hs_err_pid1234.log): the likeliest cause, its evidence
and the next step. Nothing of the command line or the environment in the file is shown.

triage --core FILE explains a core file likewise. It also says whether threads were in a deadlock,
and whether the heap or the code cache was full (docs/cores.md).

The exit code is 0 if nothing is found, and 13 if something is.`

const triageExample = `  goprof triage 1234                          or --pid 1234
  goprof triage petclinic                     the JVM with that in its main class or jar
  goprof triage --all                         all JVMs of this host, the worst first
  goprof triage 1234 --json > findings.json
  goprof triage 1234 --html findings.html     a page, and findings.cpu.jfr and findings.wall.jfr
  goprof triage 1234 -d 30s                   for what comes and goes
  goprof triage 1234 --json --redact default  pseudonyms in place of names
  goprof triage hs_err_pid1234.log            what a crash means
  goprof triage --core core.1234              of a JVM that is dead`

type triageFlags struct {
	jvm      oneJVM
	all      bool
	core     coreFile
	duration time.Duration
	html     string
	triageOutput
}

const (
	// triageLeast is the time needed to know shares of a thread's time, with 20 looks a second.
	triageLeast = 4 * time.Second
	triageMost  = 10 * time.Minute
)

func newTriage() *cobra.Command {
	f := triageFlags{duration: 10 * time.Second}
	cmd := &cobra.Command{
		Use:     "triage {PID | NAME | --ns-pid PID [NAME] | --all | snap.zip | hs_err_pidN.log | --core FILE}",
		Short:   "Say what is wrong with a JVM, the likeliest first",
		Long:    triageHelp,
		Example: triageExample,
		Args:    atMostOne,
	}
	cmd.RunE = f.runs(f.run, &stdout, &f.html)
	fs := cmd.Flags()
	fs.SortFlags = false
	f.jvm.addFlags(cmd)
	fs.BoolVar(&f.all, "all", false, "all JVMs of this host, the worst first")
	f.core.addFlags(cmd)
	fs.VarP(asTime(&f.duration), "duration", "d", "how long to look")
	fs.BoolVar(&f.json, "json", false, "write JSON")
	fs.StringVar(&f.html, "html", "",
		"also write a page with the findings and a flame graph to `file`, and its recordings beside it")
	f.redactFlags.add(cmd)
	return cmd
}

// run examines a file or a live JVM.
func (f *triageFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.core.check(cmd, args, "pid", "ns-pid", "all", "duration", "html"); err != nil {
		return err
	}
	if f.core.file != "" {
		readFilesOnly(cmd, args)
		return triageCore(cmd, &f.core, f.triageOutput)
	}
	if len(args) == 1 && isCrashFile(args[0]) {
		readFilesOnly(cmd, args)
		return explainCrash(cmd, args[0], f.triageOutput)
	}
	if isSnap(args) {
		return showKept(cmd, args[0], "triage", keptFormat(f.json), outfile.Stdout, f.by)
	}
	if !f.all {
		guard.Enter(guard.ToRecord)
	}
	if f.duration < triageLeast || f.duration > triageMost {
		return usageError(cmd, fmt.Sprintf("--duration is between %v and %v", triageLeast, triageMost),
			with("duration", "10s"))
	}
	if f.by != nil && f.html != "" {
		return usageError(cmd, "--html shows a recording, and --redact is for what triage finds: record --redact",
			without("html"))
	}
	if f.all {
		if f.html != "" || len(args) > 0 || cmd.Flags().Changed("pid") || cmd.Flags().Changed("ns-pid") {
			return usageError(cmd, "--all goes neither with a JVM nor with --html, which are of one", without("all"))
		}
		return f.everyJVM(cmd)
	}
	pid, err := f.jvm.find(cmd, args)
	if err != nil {
		return err
	}
	return f.live(cmd, pid)
}

// live examines a live JVM.
func (f *triageFlags) live(cmd *cobra.Command, pid int) error {
	defer session.StopAfterSuspend()()
	var page *outfile.File // opened first, because a name that cannot be written must not cost ten seconds
	var err error
	if f.html != "" {
		if page, err = outfile.Reserve(f.html); err != nil {
			return exit.CannotWrite(err)
		}
	}
	kept, err := keepBeside(page)
	if err != nil {
		return exit.CannotWrite(err)
	}
	defer kept.discard()
	evidence, notes, err := f.look(cmd, pid, kept)
	if err != nil {
		kept.tell(cmd.ErrOrStderr()) // these files are complete, and nothing else names them
		return err
	}
	found := triage.Judge(evidence)
	found.Notes = append(found.Notes, notes...)
	end := f.tell(cmd, &found, fmt.Sprintf("process %d", pid))
	if unwritten := (*exit.Error)(nil); errors.As(end, &unwritten) && unwritten.Code == exit.OutputFailed {
		return end
	}
	if page != nil {
		if err := f.writePage(cmd, page, kept, &found, evidence); err != nil {
			return exit.CannotWrite(err)
		}
	}
	return end
}

// look gathers the evidence, and reports progress on standard error.
func (f *triageFlags) look(cmd *cobra.Command, pid int, kept *keptRecordings) (*triage.Evidence, []string, error) {
	if err := exit.Host().Traced(pid); err != nil {
		return nil, nil, exit.CannotLook(pid, err)
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	line := terminal.NewStatusLine(cmd.ErrOrStderr())
	defer line.Wipe()
	if !line.Shown() {
		fmt.Fprintf(line, "goprof: looking at process %d for %v\n", pid, f.duration)
	}
	o := examine.Options{Duration: f.duration,
		Tell: func(text string) { line.Draw(text + "  (Ctrl-C ends)") }}
	if kept != nil {
		o.Keep = kept.begin
	}
	evidence, notes, err := examine.Gather(ctx, pid, o)
	switch {
	case ctx.Err() != nil:
		return nil, nil, &exit.Error{Code: exit.General, What: "interrupted: nothing can be said yet"}
	case err != nil:
		return nil, nil, exit.CannotLook(pid, err)
	}
	return evidence, notes, nil
}

// writePage writes the page, and reports its files.
func (f *triageFlags) writePage(cmd *cobra.Command, page *outfile.File, kept *keptRecordings, found *profile.Triage,
	e *triage.Evidence) error {
	names := kept.written()
	name, err := page.Write(func(w io.Writer) error { return drawFindings(w, found, e, names) })
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "page: %s\n", output.Printable(name))
	if kept == nil {
		return nil
	}
	kept.tell(cmd.ErrOrStderr())
	return kept.err
}

// drawFindings draws the page. Its flame graph shows CPU time. Without CPU time it shows all threads.
func drawFindings(w io.Writer, found *profile.Triage, e *triage.Evidence, recordings []string) error {
	p := e.CPU
	if p == nil || p.Counts.Samples() == 0 && e.Wall != nil {
		p = e.Wall
	}
	if p == nil {
		p = profile.New()
	}
	tree := output.TreeOf(p)
	m := &p.Meta
	title := fmt.Sprintf("triage of %s", output.CleanName(m.MainClass))
	about := [][2]string{{"program", m.MainClass}, {"pid", fmt.Sprint(e.PID)}, {"host", m.Host}, {"JVM", m.JVM},
		{"collector", m.Collector}, {"recorded", m.Start.Format(time.RFC3339)}, {"drawn by", "goprof " + version()}}
	for _, name := range recordings {
		about = append(about, [2]string{"recording", filepath.Base(name)})
	}
	return findings.Page(w, found, tree, flame.Options{Title: title, About: about,
		Line: fmt.Sprintf("%s mode \u00b7 %s \u00b7 %s \u00b7 %s \u00b7 pid %d on %s", m.Mode,
			output.Amount(tree.Weight, tree.Total), output.Round(m.Duration), m.Start.Format("2006-01-02 15:04:05 MST"),
			e.PID, output.CleanName(m.Host))})
}
