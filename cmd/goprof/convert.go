package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/caption"
	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/convert"
	"goprof/output/flame"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/output/recording"
)

type convertFlags struct {
	output, format string
	title, summary string
	shape          output.Shape
	in             inputFlags
	core           coreFile // the core file, for a heap dump
	redactFlags
}

func newConvert() *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert FILE -o OUT",
		Short: "Write a recording in another format: JFR, pprof, Firefox, speedscope ...",
		Long: `convert writes a recording, or a part of it, in the format that the name of OUT stands
for, or that -f names:

` + formatTable() + `
` + inputsHelp + `

A recording may have several parts: CPU time, waits, allocations. JFR, pprof, speedscope
and Firefox hold all of them. In the other formats OUT has one, and convert says which
parts it left out. --event chooses one.
OUT's format may have no place for some of what FILE holds: docs/formats.md lists what is lost.
--summary writes goprof's account of the run to a file of its own. Among the formats only
JFR holds the account. "goprof flame" finds OUT.summary.json beside OUT.collapsed.
A JFR file needs the time of each sample. Collapsed files and pprof profiles have none.

If FILE is a core file, OUT is a heap dump (.hprof) for Eclipse MAT, VisualVM and others:
all objects in the heap, threads with their stacks, and what keeps objects alive. --redact
also writes zero for all numbers and texts. --root and --debug-dir say where the files are
that the core lacks. docs/cores.md has the rest.`,
		Example: `  goprof convert out.jfr -o out.pb.gz
  goprof convert out.jfr -o slow.firefox.json.gz --from 10s --to 25s
  goprof convert async.jfr --event wall -o wall.html
  goprof convert jdk.jfr --event alloc --weight bytes -t -o alloc.collapsed
  goprof convert out.jfr -o out.collapsed --summary out.summary.json
  goprof convert out.jfr -f collapsed -o - | grep checkout
  goprof convert out.jfr -o out.html --redact default
  goprof convert core.1234 -o heap.hprof
  goprof convert core.1234 -o heap.hprof --redact default    shape without contents`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return runConvert(cmd, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "", "write to `file`; - is standard output")
	flags.StringVarP(&f.format, "format", "f", "", "write this `format`, whatever the file's name is")
	flags.StringVar(&f.title, "title", "", "a page's `title` (default: the program's name)")
	flags.StringVar(&f.summary, "summary", "", "`file` for goprof's account of the run as JSON")
	f.in.add(cmd)
	addShape(flags, &f.shape)
	f.redactFlags.add(cmd)
	f.core.addFiles(cmd, "for a heap dump: ")
	completeFrom(cmd, "format", format.Names())
	return cmd
}

// formatTable lists the formats for a command's help.
func formatTable() (text string) {
	for _, f := range format.All() {
		text += fmt.Sprintf("  %-11s %-19s %s\n", f, f.Extension(), f.About())
	}
	return text
}

func runConvert(cmd *cobra.Command, input string, f *convertFlags) error {
	if f.output == "" {
		return usageError(cmd, "-o is missing: where to write to, - is standard output", with("output", "out.html"))
	}
	if isHeapDump(f.output, f.format) {
		return f.heapDump(cmd, input)
	}
	to, err := format.Of(f.output, f.format)
	if err != nil {
		return usageError(cmd, err.Error())
	}
	if err := exit.NotItself(input, f.output); err != nil {
		return err
	}
	if err := f.checkShape(cmd, to); err != nil {
		return err
	}
	if err := f.prepare(cmd, input, f.output, f.summary); err != nil {
		return err
	}
	defer cleanOnSignal()()
	file, err := outfile.Reserve(f.output)
	if err != nil {
		return exit.CannotWrite(err)
	}
	var account *outfile.File
	if f.summary != "" {
		if err := exit.NotItself(input, f.summary); err != nil {
			return err
		}
		if account, err = outfile.Reserve(f.summary); err != nil {
			return exit.CannotWrite(err)
		}
	}
	f.in.all = to.Parts()
	in, err := f.in.open(cmd, input)
	if err != nil {
		return err
	}
	defer in.Close()
	in.redact(f.by)
	in.notes(cmd)
	if f.summary != "" && in.src.Info().Summary == nil {
		return in.noAccount()
	}
	samples, err := in.convert(cmd, to, f, file)
	if err != nil {
		return err
	}
	if account != nil {
		if err := in.writeAccount(cmd, account, f.output, f.by != nil); err != nil {
			return err
		}
	}
	if err := f.writeMap(); err != nil { // together with the words of the account
		return err
	}
	in.leftOut(cmd)
	if f.output != outfile.Stdout {
		fmt.Fprintf(cmd.ErrOrStderr(), "written    %s: %s, %s\n", output.Printable(f.output), to, in.amount(samples))
	}
	return nil
}

func (f *convertFlags) heapDump(cmd *cobra.Command, input string) (err error) {
	if err := exit.NotItself(input, f.output); err != nil {
		return err
	}
	if err := f.core.forHeapDump(cmd, input); err != nil {
		return err
	}
	if err := f.prepare(cmd, input, f.output); err != nil {
		return err
	}
	f.core.by = f.by
	if err := f.core.writeHeapDump(cmd, f.output); err != nil {
		return err
	}
	return f.writeMap()
}

// noAccount returns the error for --summary with a recording that has no account.
func (in *openInput) noAccount() error {
	lacks := &recording.Lacks{Problem: "--summary needs the account of the run, and " + in.name + " has none",
		Remedy: "goprof's own JFR files have one"}
	if in.part != nil {
		lacks.Problem, lacks.Remedy = "--summary is of the whole run, and a filter takes a part of it", "leave the filter out"
	}
	return exit.CannotRead(in.name, lacks)
}

// writeAccount writes the account of the converted recording to a file. of is the name of the recording. A redacted
// account does not contain it.
func (in *openInput) writeAccount(cmd *cobra.Command, to *outfile.File, of string, redacted bool) error {
	s := *in.src.Info().Summary
	if s.Of = filepath.Base(of); redacted {
		s.Of = ""
	}
	name, err := to.Write(func(w io.Writer) error { return output.WriteSummary(w, &s) })
	if err != nil {
		return exit.CannotWrite(err)
	}
	if name != outfile.Stdout {
		fmt.Fprintf(cmd.ErrOrStderr(), "account    %s\n", output.Printable(name))
	}
	return nil
}

// checkShape refuses flags that a format does not use.
func (f *convertFlags) checkShape(cmd *cobra.Command, to format.Format) error {
	drawn := to.Drawn() || to == format.JSON
	switch {
	case f.core.root != "" || len(f.core.debugDirs) > 0:
		return usageError(cmd, "--root and --debug-dir are for heap dumps of core files: -o OUT.hprof")
	case f.summary != "" && filepath.Clean(f.summary) == filepath.Clean(f.output):
		return usageError(cmd, "--output and --summary are the same file", without("summary"))
	case f.shape != (output.Shape{}) && !drawn:
		return usageError(cmd, "--hide-internal and --group-threads are for html, svg and json",
			without("hide-internal", "group-threads"))
	case f.title != "" && !to.Drawn():
		return usageError(cmd, "--title is for html and svg", without("title"))
	case f.in.weight != "" && to == format.Firefox:
		return usageError(cmd, "--weight is not for firefox, which shows samples with all that they count",
			without("weight"))
	}
	return nil
}

// convert writes the recording. Its errors distinguish failed reads from failed writes.
func (in *openInput) convert(cmd *cobra.Command, to format.Format, f *convertFlags, file *outfile.File) (int64, error) {
	o := convert.Options{Sum: in.sumOptions(), Shape: f.shape, Tell: func(text string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s\n", output.Printable(text))
	}}
	o.Sum.Threads = o.Sum.Threads || f.shape.GroupThreads && in.file.Info().Threads
	o.Page = func(tree *output.Tree) flame.Options {
		info := in.src.Info()
		return caption.Drawing(version(), in.pageName(), f.title, tree, &info)
	}
	samples := int64(0)
	_, err := file.Write(func(w io.Writer) (err error) {
		samples, err = convert.Write(w, to, in.src, o)
		return err
	})
	var source *convert.SourceError
	switch {
	case errors.As(err, &source):
		return 0, exit.CannotRead(in.name, source.Err)
	case err != nil:
		return 0, exit.CannotWrite(err)
	}
	return samples, nil
}
