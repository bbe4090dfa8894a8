package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/diff"
	"goprof/output/format"
	"goprof/output/outfile"
)

type diffFlags struct {
	by, output, format, title string
	ranges                    [2]timeRange // of the recordings before and after
	top                       int
	minChange                 float64
	asJSON, exitCode          bool
	allFrames                 bool
	shape                     output.Shape
	in                        inputFlags
}

var diffFormats = []format.Format{format.Collapsed, format.JSON, format.HTML, format.SVG}

func newDiff() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff BEFORE AFTER | diff BEFORE... -- AFTER... | diff FILE --before FROM-TO --after FROM-TO",
		Short: "Show what changed between two recordings, and what of it is noise",
		Long: `diff compares the shares that methods and paths have in two recordings. For each change
it says what noise alone would give. A star marks a significant change: noise alone
should give any star at all in less than 5 of 100 comparisons. docs/diff.md has its limits,
docs/evidence/diff.md the test.

If both recordings are of one JVM, noise is what changes within each of them. Two starts
of a JVM differ by more: the compiler decides otherwise. Measuring that takes at least
three recordings a side. With fewer, the column "starts" says what two starts of one program
usually differ by, measured over other programs. A change that is larger is "likely", and
the likeliest come first. ~ marks what is more than noise within the recordings alone.

To compare two versions, record several starts of each, best five. Give all files: those
of before, then --, then those of after. Noise is then what differs between the
recordings of a side. Flags stand before the --.

--before and --after compare two times of one recording, or take a part of the recordings of a side:
0s-60s, 60s- (to the end), -60s (from the start). A name in quotes may be a pattern: 'before-*.jfr'.

BEFORE and AFTER are collapsed files, pprof profiles or JFR files; each one's content
tells which. "-" is standard input. If a file has times (JFR), noise is measured. If
neither has, diff assumes how large noise is, and says so.

-o writes a table (.txt), JSON (.json), or a differential flame graph as a page (.html)
or a picture (.svg). The flame graph has the shape of AFTER. A red frame has more of the
time than before, a blue one less. A pale frame is not proven, a grey one is within noise.

The exit code is 0 whether there are changes or not. With --exit-code it is 11 if a
change is significant, so that a script can tell a change from an error (1 to 10).`,
		Example: `  goprof diff before.jfr after.jfr
  goprof diff before.jfr after.jfr --by class --top 20
  goprof diff before.jfr after.jfr -o diff.html
  goprof diff x.jfr --before 0s-60s --after 60s-          two times of one recording
  goprof diff -o diff.html before*.jfr -- after*.jfr      several starts of each version
  goprof diff old.collapsed new.collapsed --json | jq '.changes[] | select(.significant)'

  # A canary of five old and five new JVMs: stop if anything changed by a point or more.
  for pid in $OLD; do goprof record --pid "$pid" -d 2m -o before-%p.jfr; done
  for pid in $NEW; do goprof record --pid "$pid" -d 2m -o after-%p.jfr; done
  goprof diff --exit-code --min-change 1 -o diff.html before-*.jfr -- after-*.jfr
  case $? in
    0)  echo "no significant change" ;;
    11) echo "something changed: see diff.html"; exit 1 ;;
    *)  echo "could not compare"; exit 2 ;;
  esac`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := f.sides(cmd, args)
			if err != nil {
				return err
			}
			return runDiff(cmd, names, &f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.by, "by", "method", "compare by `what`: "+strings.Join(diff.Keys, ", "))
	flags.IntVar(&f.top, "top", 10, "show `n` changes by self, by total, and of paths; 0 for all")
	flags.Float64Var(&f.minChange, "min-change", 0, "show only changes of this many `points` (of 100) or more")
	flags.BoolVar(&f.asJSON, "json", false, "write JSON")
	flags.BoolVar(&f.exitCode, "exit-code", false, "exit with 11 if a change is significant")
	flags.Var(&f.ranges[diff.Before], "before", "of the recordings before only this `time`: 0s-60s")
	flags.Var(&f.ranges[diff.After], "after", "of the recordings after only this `time`: 60s-")
	flags.StringVarP(&f.output, "output", "o", outfile.Stdout,
		"write to `file`; its name chooses: .txt, .json, .html, .svg")
	flags.StringVarP(&f.format, "format", "f", "",
		"write this `format` whatever the file's name is: text, json, html, svg")
	flags.StringVar(&f.title, "title", "", "the `title` of a page or picture (default: the files' names)")
	flags.BoolVar(&f.shape.HideInternal, "hide-internal", false, hideInternalUsage)
	flags.BoolVar(&f.allFrames, "all-frames", false, allFramesUsage)
	f.in.add(cmd)
	completeFrom(cmd, "by", diff.Keys)
	return cmd
}

// sides separates the files before from the files after. With two ranges of time, one file is both.
func (f *diffFlags) sides(cmd *cobra.Command, args []string) (names [2][]string, err error) {
	ranged := f.ranges[diff.Before].given() || f.ranges[diff.After].given()
	if ranged && (f.in.from > 0 || f.in.to > 0) {
		return names, usageError(cmd, "--from and --to are of both sides, --before and --after of one: give these",
			without("from", "to"))
	}
	if ranged && len(args) == 1 {
		if !f.ranges[diff.Before].given() || !f.ranges[diff.After].given() {
			return names, usageError(cmd, "two times of one recording are --before and --after: one is missing",
				f.otherRange())
		}
		args = append(args, args[0])
	}
	dash := cmd.ArgsLenAtDash()
	if dash <= 0 && len(args) > 2 {
		return names, usageError(cmd, "more than two recordings need -- between those of before and those of after: "+
			"goprof diff before1.jfr before2.jfr -- after1.jfr after2.jfr")
	}
	if dash <= 0 { // a leading -- only ends the flags; it does not divide the names
		dash = min(len(args), 1)
	}
	names = [2][]string{matching(args[:dash]), matching(args[dash:])}
	if err := exactly("BEFORE", "AFTER")(cmd, args[:min(len(args), 2)]); err != nil {
		return names, err
	}
	for _, of := range names {
		switch {
		case len(of) == 0:
			return names, usageError(cmd, "missing AFTER, behind the --")
		case len(of) > diff.MaxRuns:
			return names, usageError(cmd, fmt.Sprintf("at most %d recordings of each side are compared", diff.MaxRuns))
		}
		for _, name := range of {
			if cmd.ArgsLenAtDash() > 0 && strings.HasPrefix(name, "-") && name != outfile.Stdout {
				return names, usageError(cmd, fmt.Sprintf("flags stand before the --, and behind it %q is a file", name))
			}
		}
	}
	return names, nil
}

// otherRange adds the missing range: the rest of the recording.
func (f *diffFlags) otherRange() fix {
	before, after := &f.ranges[diff.Before], &f.ranges[diff.After]
	switch {
	case after.given() && after.from > 0:
		return with("before", "0s-"+after.from.String())
	case after.given() && after.to > 0:
		return with("before", after.to.String()+"-")
	case before.given() && before.to > 0:
		return with("after", before.to.String()+"-")
	case before.given() && before.from > 0:
		return with("after", "0s-"+before.from.String())
	case after.given():
		return with("before", "0s-60s")
	}
	return with("after", "60s-")
}

// matching replaces patterns by the files that they match. A pattern without a match is kept as a name.
func matching(names []string) (files []string) {
	for _, name := range names {
		if _, err := os.Stat(name); err != nil {
			if found, _ := filepath.Glob(name); len(found) > 0 {
				files = append(files, found...)
				continue
			}
		}
		files = append(files, name)
	}
	return files
}

func runDiff(cmd *cobra.Command, names [2][]string, f *diffFlags) error {
	to, err := f.check(cmd, slices.Concat(names[0], names[1]))
	if err != nil {
		return err
	}
	c := diff.New()
	weight, first := "", names[0][0]
	for side, of := range names {
		for _, name := range of {
			counted, err := f.read(cmd, c, diff.Side(side), name)
			if err != nil {
				return err
			}
			if weight != "" && counted != weight {
				return &exit.Error{Code: exit.BadInput, What: fmt.Sprintf("cannot compare %s with %s", first, name),
					Why:    fmt.Sprintf("the first counts %s, the second %s", weight, counted),
					Remedy: "--weight samples, if both have them"}
			}
			weight = counted
		}
	}
	r, err := c.Compare(diff.Options{By: f.by, Top: f.top, MinChange: f.minChange / 100})
	if err != nil {
		return err
	}
	if err := f.write(cmd, r, to); err != nil {
		return err
	}
	if f.exitCode && r.Significant > 0 {
		return &exit.Error{Code: exit.Changed, What: r.Verdict()}
	}
	return nil
}

// check checks the flags, and returns the format of the result.
func (f *diffFlags) check(cmd *cobra.Command, names []string) (format.Format, error) {
	switch {
	case f.top < 0:
		return 0, usageError(cmd, "--top is how many changes to show, 0 for all", without("top"))
	case !(f.minChange >= 0 && f.minChange <= 100):
		return 0, usageError(cmd, "--min-change is a number of points, from 0 to 100", without("min-change"))
	case !slices.Contains(diff.Keys, f.by):
		return 0, usageError(cmd, fmt.Sprintf("--by is one of %s, not %q", strings.Join(diff.Keys, ", "), f.by),
			without("by"))
	}
	stdin := 0
	for _, name := range names {
		if name == outfile.Stdout {
			stdin++
		}
		if stdin > 1 {
			return 0, usageError(cmd, "only one of them can be standard input")
		}
		if err := exit.NotItself(name, f.output); err != nil {
			return 0, err
		}
	}
	named := f.format
	if named == "text" {
		named = format.Collapsed.String()
	}
	if f.asJSON && named == "" {
		named = format.JSON.String()
	}
	to, err := format.Of(f.output, named)
	if err != nil || !slices.Contains(diffFormats, to) || filepath.Ext(f.output) == ".collapsed" && named == "" {
		return 0, usageError(cmd, fmt.Sprintf("diff writes .txt, .json, .html and .svg (-f text, json, html, svg), not %q",
			cmp.Or(f.format, filepath.Ext(f.output))), with("output", "diff.html"), without("format"))
	}
	return to, nil
}

// read adds one recording to the comparison, and returns its unit.
func (f *diffFlags) read(cmd *cobra.Command, c *diff.Comparison, side diff.Side, name string) (string, error) {
	wanted := f.in
	if r := f.ranges[side]; r.given() {
		wanted.from, wanted.to = r.from, r.to
	}
	in, err := wanted.open(cmd, name)
	if err != nil {
		return "", err
	}
	defer in.Close()
	in.notes(cmd)
	o := diff.Reading{SumOptions: in.sumOptions(), HideInternal: f.shape.HideInternal,
		AllFrames: f.allFrames}
	o.Threads = o.Threads || f.by == output.ByThread && in.file.Info().Threads
	o.States = f.by != diff.ByPath // a thread's state decides for which frame its time counts; paths end as in the file
	if err := c.AddSource(side, in.src, o); err != nil {
		return "", exit.CannotRead(name, err)
	}
	in.leftOut(cmd)
	return in.src.Info().Meta.Weight.String(), nil
}

func (f *diffFlags) write(cmd *cobra.Command, r *diff.Result, to format.Format) error {
	write := r.Text
	r.Before.Name, r.After.Name = f.ranges[diff.Before].of(r.Before.Name), f.ranges[diff.After].of(r.After.Name)
	title := cmp.Or(f.title, r.Before.Name+" \u2192 "+r.After.Name)
	switch to {
	case format.JSON:
		write = r.JSON
	case format.HTML:
		write = func(w io.Writer) error { return r.Page(w, title, [][2]string{{"drawn by", "goprof " + version()}}) }
	case format.SVG:
		write = func(w io.Writer) error { return r.SVG(w, title) }
	}
	if err := writeResult(cmd, f.output, write); err != nil {
		return err
	}
	if f.output != outfile.Stdout {
		if !f.exitCode || r.Significant == 0 { // otherwise the reason for the exit code says it
			fmt.Fprintln(cmd.ErrOrStderr(), output.Printable(r.Verdict()))
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "written: %s\n", output.Printable(f.output))
	}
	return nil
}
