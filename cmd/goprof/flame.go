package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/flame"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/output/recording"
	"goprof/profile"
)

type flameFlags struct {
	output, title, summary string
	minwidth               float64
	svg                    bool
	shape                  output.Shape
	drawing                drawing
	in                     inputFlags
}

func newFlame() *cobra.Command {
	var f flameFlags
	cmd := &cobra.Command{
		Use:   "flame FILE",
		Short: "Draw a recording as a flame graph, one page that needs no network",
		Long: `flame draws a recording as a page beside it. The page holds all it needs: it can be mailed,
and opened offline.

In the page: / searches by regular expression, a click zooms, r shows the callers of
each leaf, i puts the root on top, ? lists all keys. Page.html#q=text opens with a search.

` + inputsHelp + `

The page also shows the account of the recording. A JFR file holds it. For out.collapsed it is
read from out.summary.json in the same folder, if that file belongs to the recording.

flame replaces an older page of the same recording, and what -o names. It keeps any other file of
that name: the page is out.1.html then.`,
		Example: `  goprof flame out.collapsed
  goprof flame out.collapsed -o incident-4711.html --title "checkout, slow"
  goprof flame out.collapsed --open              and show it in the browser
  goprof flame out.collapsed --svg -o ticket.svg
  goprof flame out.jfr --from 10s --to 25s --thread http
  goprof flame async.jfr --event alloc           what allocates, in bytes
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
	addOpen(flags)
	addShape(flags, &f.shape)
	f.drawing.add(flags)
	flags.StringVar(&f.summary, "summary", "", "the summary `file` of a collapsed file (default: beside FILE)")
	f.in.add(cmd)
	return cmd
}

func drawFlame(cmd *cobra.Command, input string, f *flameFlags) error {
	if !(f.minwidth >= 0 && f.minwidth < 100) {
		return usageError(cmd, "--minwidth is a share in percent, from 0 to less than 100", without("minwidth"))
	}
	if err := notItself(input, f.output); err != nil {
		return err
	}
	if err := checkOpen(cmd, f.output, format.HTML); err != nil {
		return err
	}
	defer cleanOnSignal()()
	file, err := reserveFlame(input, f)
	if err != nil {
		return outputFailed(err)
	}
	in, err := f.in.open(cmd, input)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := in.describe(cmd, f.summary); err != nil {
		return err
	}
	sum := in.sumOptions()
	sum.Threads = sum.Threads || f.shape.GroupThreads && in.file.Info().Threads
	tree, err := in.tree(sum)
	if err != nil {
		return err
	}
	in.leftOut(cmd)
	info := in.src.Info()
	tree, whole := tree.Drawn(f.drawing.of(f.shape))
	o := drawingOf(input, f.title, tree, &info)
	o.MinShare, o.Whole = f.minwidth/100, whole
	draw := flame.Page
	if f.svg {
		draw = flame.SVG
	}
	name, err := file.Write(func(w io.Writer) error { return draw(w, tree, o) })
	if err != nil {
		return outputFailed(err)
	}
	if name != outfile.Stdout {
		fmt.Fprintf(cmd.ErrOrStderr(), "flame graph: %s (%s, %d stacks, %d frames)\n", output.Printable(name),
			output.Amount(tree.Weight, tree.Total), tree.Stacks, len(tree.Nodes)-1)
	}
	theOpener.open(name)
	return nil
}

func reserveFlame(input string, f *flameFlags) (*outfile.File, error) {
	if f.output != "" {
		return outfile.Reserve(f.output)
	}
	suffix := ".html"
	if f.svg {
		suffix = ".svg"
	}
	if input == outfile.Stdout {
		return outfile.ReserveNumbered("flame"+suffix, nil)
	}
	return outfile.ReserveAgain(strings.TrimSuffix(input, filepath.Ext(input))+suffix, flame.Mark(input))
}

// describe gives a collapsed file the summary that is named. Otherwise it says what is wrong with the summary beside
// the file.
func (in *openInput) describe(cmd *cobra.Command, named string) error {
	if named == "" {
		in.notes(cmd)
		return nil
	}
	tree := in.file.Tree()
	if tree == nil {
		return usageError(cmd, "--summary is for collapsed files: what is known of others is in them", without("summary"))
	}
	file, err := os.Open(named)
	if err != nil {
		return badInput(named, err)
	}
	defer file.Close()
	s, err := recording.ReadSummary(file, in.name, tree)
	if err != nil {
		return &exit.Error{Code: exit.BadInput, What: "cannot use " + named, Err: err}
	}
	in.file.Describe(s)
	return nil
}

// otherMode is the mode of a recording in words for a title, empty for the usual one.
func otherMode(m *profile.Meta) string {
	if m.Mode == "" || m.Mode == profile.ModeCPU {
		return ""
	}
	return output.CleanName(m.Mode)
}

func flameTitle(input, title string, i *recording.Info) string {
	switch {
	case title != "":
		return title
	case i.Meta.MainClass != "":
		title := output.CleanName(i.Meta.MainClass)
		if mode := otherMode(&i.Meta); mode != "" {
			title += ", " + mode
		}
		return title
	case input == outfile.Stdout:
		return "flame graph"
	}
	return filepath.Base(input)
}

// drawingOf is what a flame graph says of its recording.
func drawingOf(input, title string, tree *output.Tree, i *recording.Info) flame.Options {
	return flame.Options{Title: flameTitle(input, title, i), Source: sourceOf(input),
		Line:  infoLine(output.Amount(tree.Weight, tree.Total), i),
		About: about(input, tree, i)}
}

// sourceOf is the name of the file that is drawn, or empty.
func sourceOf(input string) string {
	if input == outfile.Stdout {
		return ""
	}
	return input
}

// infoLine says in one line what was recorded, and how much. A collapsed file without a summary tells no more than the
// amount.
func infoLine(amount string, i *recording.Info) string {
	facts := []string{amount}
	m := &i.Meta
	if i.Summary != nil || m.Mode != "" {
		mode := cmp.Or(output.CleanName(m.Mode), "cpu")
		facts = append([]string{mode + " mode"}, facts...)
	}
	if m.Duration > 0 {
		facts = append(facts, output.Span(m.Duration))
	}
	if !m.Start.IsZero() {
		facts = append(facts, m.Start.Format("2006-01-02 15:04:05 MST"))
	}
	if m.PID > 0 {
		where := fmt.Sprintf("pid %d", m.PID)
		if m.Host != "" {
			where += " on " + output.CleanName(m.Host)
		}
		facts = append(facts, where)
	}
	if s := i.Summary; s != nil && s.Quality != "" && s.Quality != profile.Good {
		facts = append(facts, "quality "+output.CleanName(string(s.Quality)))
	}
	return strings.Join(facts, " \u00b7 ")
}

// about is what the page says of itself.
func about(input string, tree *output.Tree, i *recording.Info) (facts [][2]string) {
	add := func(name, format string, values ...any) {
		facts = append(facts, [2]string{name, fmt.Sprintf(format, values...)})
	}
	if input != outfile.Stdout {
		add("file", "%s", filepath.Base(input))
	}
	facts = append(facts, aboutRecording(i)...)
	s := i.Summary
	if s != nil {
		add("rate", "%.4g Hz reached, %.4g Hz asked", s.RateReached, s.Rate)
	}
	switch {
	case tree.Weight == profile.Samples:
		add("samples", "%s", output.Grouped(tree.Total))
	case tree.Weight == profile.CPUTime:
		add("CPU time", "%s", output.Amount(tree.Weight, tree.Total))
	case tree.Weight == profile.Bytes:
		add("allocated", "%s", output.Amount(tree.Weight, tree.Total))
	default:
		add("time", "%s", output.Amount(tree.Weight, tree.Total))
	}
	if s != nil && tree.Weight.IsTime() {
		add("samples", "%s", output.Grouped(s.Samples))
	}
	if tree.Unnamed > 0 {
		add("guesses", "in %s which inlined method was running is a guess: these count for the compiled method",
			output.Percent(tree.Unnamed, tree.Total))
	}
	add("stacks", "%s different", output.Grouped(int64(tree.Stacks)))
	add("frames", "%s", output.Grouped(int64(len(tree.Nodes)-1)))
	if s != nil {
		facts = append(facts, aboutAccount(s)...)
	}
	add("drawn by", "goprof %s", version())
	return facts
}

// aboutRecording is what is known of how a recording was made.
func aboutRecording(i *recording.Info) (facts [][2]string) {
	m := &i.Meta
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, [2]string{name, text})
		}
	}
	add("program", m.MainClass)
	if m.PID > 0 {
		add("pid", strconv.Itoa(m.PID))
	}
	add("host", m.Host)
	add("JVM", m.JVM)
	add("collector", m.Collector)
	if !m.Start.IsZero() {
		add("recorded", fmt.Sprintf("%s, for %s", m.Start.Format(time.RFC3339), output.Span(m.Duration)))
	}
	add("mode", m.Mode)
	add("events", i.Event)
	return facts
}

// aboutAccount is the recording's own account of the run.
func aboutAccount(s *profile.Summary) (facts [][2]string) {
	add := func(name, format string, values ...any) {
		facts = append(facts, [2]string{name, fmt.Sprintf(format, values...)})
	}
	if s.Quality != "" && s.Quality != profile.Good {
		why := ""
		if len(s.Doubts) > 0 { // JFR files hold no doubts
			why = ": " + strings.Join(s.Doubts, "; ")
		}
		add("quality", "%s%s", output.CleanName(string(s.Quality)), why)
	}
	add("truncated", "%s (%s)", output.Grouped(s.Truncated), output.Percent(s.Truncated, s.Attempted))
	add("lost", "%s (%s)", output.Grouped(s.Lost), output.Percent(s.Lost, s.Attempted))
	if p := &s.Pauses; p.Count > 0 { // perf's samples and recordings of other tools have none
		add("pauses", "p50 %s, p99 %s, max %s", output.Span(p.P50), output.Span(p.P99), output.Span(p.Max))
	}
	add("goprof's CPU", "%s", output.Span(s.OwnCPU))
	add("recorded by", "goprof %s", s.Meta.Version)
	return facts
}
