package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/flame"
	"goprof/profile"
)

type flameFlags struct {
	output, title, summary string
	minwidth               float64
	svg                    bool
	shape                  output.Shape
}

func newFlame() *cobra.Command {
	var f flameFlags
	cmd := &cobra.Command{
		Use:   "flame FILE",
		Short: "Draw a recording as a flame graph, one page that needs no network",
		Long: `Flame reads a collapsed file ("-" is standard input), ours or another tool's, and
writes a page beside it that holds all it needs: it can be mailed, and opened offline.
In the page: / searches by regular expression, a click zooms, r shows the callers of
each leaf, i puts the root on top, ? lists all keys. Page.html#q=text opens with a search.

What the page says of the recording is taken from FILE's summary, out.summary.json
beside out.collapsed, if it is there and belongs to it.

An older page is not overwritten, unless it is named with -o.`,
		Example: `  goprof flame out.collapsed
  goprof flame out.collapsed -o incident-4711.html --title "checkout, slow"
  goprof flame out.collapsed --svg -o ticket.svg
  goprof record --pid 1234 -d 10s -o - | goprof flame - -o now.html`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return drawFlame(cmd, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "", "write to `file`; - is standard output (default: beside FILE, .html)")
	flags.StringVar(&f.title, "title", "", "the page's `title` (default: the program's name)")
	flags.Float64Var(&f.minwidth, "minwidth", 0, "leave out frames with less than this share of all samples, in `percent`")
	flags.BoolVar(&f.svg, "svg", false, "a picture without scripts instead of a page")
	addShape(flags, &f.shape)
	flags.StringVar(&f.summary, "summary", "", "the recording's summary `file` (default: beside FILE)")
	return cmd
}

func drawFlame(cmd *cobra.Command, input string, f *flameFlags) error {
	if !(f.minwidth >= 0 && f.minwidth < 100) {
		return usageError(cmd, "--minwidth is a share in percent, from 0 to less than 100")
	}
	if err := notItself(input, f.output); err != nil {
		return err
	}
	file, err := reserveFlame(input, f)
	if err != nil {
		return outputFailed(err)
	}
	tree, err := readCollapsed(cmd, input)
	if err != nil {
		return err
	}
	summary, err := findSummary(cmd, input, f.summary, tree)
	if err != nil {
		return err
	}
	tree = tree.Shaped(f.shape)
	o := flame.Options{Title: flameTitle(input, f.title, summary), Line: infoLine(tree, summary), MinShare: f.minwidth / 100, About: about(input, tree, summary)}
	draw := flame.Page
	if f.svg {
		draw = flame.SVG
	}
	name, err := file.Write(func(w io.Writer) error { return draw(w, tree, o) })
	if err != nil {
		return outputFailed(err)
	}
	if name != output.Stdout {
		fmt.Fprintf(cmd.ErrOrStderr(), "flame graph: %s (%s, %d stacks, %d frames)\n", output.Printable(name), output.Amount(tree.Weight, tree.Total), tree.Stacks, len(tree.Nodes)-1)
	}
	return nil
}

func reserveFlame(input string, f *flameFlags) (*output.File, error) {
	if f.output != "" {
		return output.Reserve(f.output)
	}
	name := "flame"
	if input != output.Stdout {
		name = strings.TrimSuffix(input, filepath.Ext(input))
	}
	if f.svg {
		return output.ReserveNumbered(name+".svg", nil)
	}
	return output.ReserveNumbered(name+".html", nil)
}

// findSummary reads the summary that is named, or the one beside the input. A summary
// with another number of samples is another recording's.
func findSummary(cmd *cobra.Command, input, named string, tree *output.Tree) (*profile.Summary, error) {
	name := named
	if named == "" {
		if input == output.Stdout {
			return nil, nil
		}
		name = output.SummaryPath(input)
	}
	file, err := os.Open(name)
	if err != nil {
		if named == "" && errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, badInput(name, err)
	}
	defer file.Close()
	s, err := output.ReadSummary(file)
	if err == nil && weightOf(s) != tree.Total {
		err = fmt.Errorf("it is of a recording of %s, and %s holds %d", output.Amount(s.Meta.Weight, weightOf(s)), input, tree.Total)
	}
	if err == nil {
		tree.Weight = s.Meta.Weight
		return s, nil
	}
	if named != "" {
		return nil, &exit.Error{Code: exit.BadInput, What: "cannot use " + name, Err: err}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s not used: %s\n", output.Printable(name), output.Printable(err.Error()))
	return nil, nil
}

// weightOf is the sum of the counts in the file that a summary is of.
func weightOf(s *profile.Summary) int64 {
	switch {
	case s.Meta.Weight == profile.CPUTime:
		return int64(s.Times.Process)
	case s.Meta.Weight == profile.WallTime && s.Looks != nil:
		return int64(s.Looks.Time)
	}
	return s.Samples
}

// otherMode is the mode of a recording in words for a title, empty for the usual one.
func otherMode(s *profile.Summary) string {
	if s == nil || s.Meta.Mode == "" || s.Meta.Mode == profile.ModeCPU {
		return ""
	}
	return output.CleanName(s.Meta.Mode)
}

func flameTitle(input, title string, s *profile.Summary) string {
	switch {
	case title != "":
		return title
	case s != nil && s.Meta.MainClass != "":
		title := output.CleanName(s.Meta.MainClass)
		if mode := otherMode(s); mode != "" {
			title += ", " + mode
		}
		return title
	case input == output.Stdout:
		return "flame graph"
	}
	return filepath.Base(input)
}

// infoLine says in one line what was recorded. Of a file without a summary only its weight is known.
func infoLine(tree *output.Tree, s *profile.Summary) string {
	facts := []string{output.Amount(tree.Weight, tree.Total)}
	if s != nil {
		m := &s.Meta
		mode := cmp.Or(output.CleanName(m.Mode), "cpu")
		facts = append([]string{mode + " mode"}, facts...)
		if m.Duration > 0 {
			facts = append(facts, output.Round(m.Duration).String())
		}
		if !m.Start.IsZero() {
			facts = append(facts, m.Start.Format("2006-01-02 15:04:05 MST"))
		}
		if m.PID > 0 {
			facts = append(facts, strings.TrimSuffix(fmt.Sprintf("pid %d on %s", m.PID, output.CleanName(m.Host)), " on "))
		}
		if s.Quality != "" && s.Quality != profile.Good {
			facts = append(facts, "quality "+output.CleanName(string(s.Quality)))
		}
	}
	return strings.Join(facts, " \u00b7 ")
}

// about is what the page says of itself.
func about(input string, tree *output.Tree, s *profile.Summary) (facts [][2]string) {
	add := func(name, format string, values ...any) {
		facts = append(facts, [2]string{name, fmt.Sprintf(format, values...)})
	}
	if input != output.Stdout {
		add("file", "%s", filepath.Base(input))
	}
	if s != nil {
		m := &s.Meta
		add("program", "%s", m.MainClass)
		add("pid", "%d", m.PID)
		add("host", "%s", m.Host)
		add("JVM", "%s", m.JVM)
		add("collector", "%s", m.Collector)
		add("recorded", "%s, for %s", m.Start.Format(time.RFC3339), m.Duration.Round(time.Millisecond))
		add("mode", "%s", m.Mode)
		add("rate", "%.4g Hz reached, %.4g Hz asked", s.RateReached, s.Rate)
	}
	switch {
	case tree.Weight == profile.Samples:
		add("samples", "%d", tree.Total)
	case tree.Weight == profile.CPUTime:
		add("CPU time", "%s", output.Amount(tree.Weight, tree.Total))
	default:
		add("time", "%s", output.Amount(tree.Weight, tree.Total))
	}
	if s != nil && tree.Weight.IsTime() {
		add("samples", "%d", s.Samples)
	}
	add("stacks", "%d different", tree.Stacks)
	add("frames", "%d", len(tree.Nodes)-1)
	if s != nil {
		if s.Quality != "" && s.Quality != profile.Good {
			add("quality", "%s: %s", output.CleanName(string(s.Quality)), strings.Join(s.Doubts, "; "))
		}
		add("truncated", "%d (%s)", s.Truncated, output.Percent(s.Truncated, s.Attempted))
		add("lost", "%d (%s)", s.Lost, output.Percent(s.Lost, s.Attempted))
		p := &s.Pauses
		add("pauses", "p50 %s, p99 %s, max %s", output.Round(p.P50), output.Round(p.P99), output.Round(p.Max))
		add("goprof's CPU", "%s", output.Round(s.OwnCPU))
		add("recorded by", "goprof %s", s.Meta.Version)
	}
	add("drawn by", "goprof %s", version())
	return facts
}
