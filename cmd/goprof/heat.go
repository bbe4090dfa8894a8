package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/format"
	"goprof/output/heat"
	"goprof/output/recording"
	"goprof/profile"
)

type heatFlags struct {
	output, title, event string
	threads, pools       bool
}

func newHeat() *cobra.Command {
	var f heatFlags
	cmd := &cobra.Command{
		Use:   "heat FILE",
		Short: "Draw a recording over time: when it began, and what changed",
		Long: `Heat reads a recording whose samples have times (JFR: ours, the JDK's, async-profiler's)
and writes a page that holds all it needs: it can be mailed, and opened offline.

On top is time: a column a second, a cell 20 ms (more in long recordings), a strip for each
pool of threads, and marks for collections, safepoints and pauses that the recording knows.
Select some time, and below stands its flame graph. Shift+drag selects a second time, and the
flame graph shows what differs. A click on a frame shows when it was seen.

Of a wall-clock recording the page first shows threads that run, wait for a CPU, a monitor or
a file. Threads that rest are a click away: most of them have nothing to do.

In the page ? lists all keys. An older page is not overwritten, unless it is named with -o.`,
		Example: `  goprof record --pid 1234 -d 1m -o out.jfr && goprof heat out.jfr
  goprof heat out.jfr -o incident-4711.html --title "checkout, slow since 3:14"
  goprof heat out.jfr --threads                  a strip for each thread
  goprof heat app.jfr --event wall               of recordings with several kinds of samples`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return drawHeat(cmd, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "", "write to `file`; - is standard output (default: beside FILE, .heat.html)")
	flags.StringVar(&f.title, "title", "", "the page's `title` (default: the program's name)")
	flags.BoolVarP(&f.threads, "threads", "t", false, "a strip for each thread")
	flags.BoolVar(&f.pools, "pools", false, "a strip for each pool of threads: pool-1-thread-* (default)")
	flags.StringVar(&f.event, "event", "", "which samples: "+strings.Join(recording.EventGroups, ", ")+", or an event's `name`")
	return cmd
}

func drawHeat(cmd *cobra.Command, input string, f *heatFlags) error {
	if f.threads && f.pools {
		return usageError(cmd, "--threads and --pools exclude each other")
	}
	if err := notItself(input, f.output); err != nil {
		return err
	}
	file, err := reserveHeat(input, f.output)
	if err != nil {
		return outputFailed(err)
	}
	src, err := recording.Open(input, recording.Options{Event: f.event})
	if err != nil {
		return heatInput(input, err)
	}
	defer src.Close()
	info := src.Info()
	for _, note := range info.Notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s\n", output.Printable(note))
	}
	var unread error
	name, err := file.Write(func(w io.Writer) error {
		page := writeErrors{to: w}
		err := heat.Write(&page, src, heat.Options{Title: heatTitle(input, f.title, &info), Line: heatLine(&info), About: heatAbout(&info), Threads: f.threads})
		if page.err == nil {
			unread = err // it is about what is read
		}
		return err
	})
	switch {
	case unread != nil:
		return heatInput(input, unread)
	case err != nil:
		return outputFailed(err)
	}
	if name != output.Stdout {
		fmt.Fprintf(cmd.ErrOrStderr(), "heat map: %s\n", output.Printable(name))
	}
	return nil
}

// writeErrors tells whether an error was one of writing.
type writeErrors struct {
	to  io.Writer
	err error
}

func (w *writeErrors) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.err = cmp.Or(w.err, err)
	return n, err
}

func reserveHeat(input, named string) (*output.File, error) {
	if named != "" {
		return output.Reserve(named)
	}
	name := "heat.html"
	if input != output.Stdout {
		name = format.Trim(input) + ".heat.html"
	}
	return output.ReserveNumbered(name, nil)
}

// heatInput tells why a recording cannot be drawn.
func heatInput(input string, err error) error {
	e := badInput(input, err)
	e.What = "cannot draw " + input
	var lacks *recording.Lacks
	switch {
	case errors.Is(err, heat.ErrNoTimes):
		e.Err, e.Why = nil, "it has sums only, and nothing of when: collapsed stacks and pprof have no times"
		e.Remedy = "goprof record --pid PID -o FILE.jfr keeps when each sample was taken; goprof flame " +
			commandLine([]string{input}) + " draws this one"
	case errors.Is(err, heat.ErrEmpty):
		e.Code = exit.NoSamples
	case errors.As(err, &lacks):
		e.Remedy = lacks.Remedy
	}
	return e
}

func heatTitle(input, title string, info *recording.Info) string {
	switch {
	case title != "":
		return title
	case info.Meta.MainClass != "":
		return output.CleanName(info.Meta.MainClass)
	case input == output.Stdout:
		return "heat map"
	}
	return info.Name
}

// heatLine says in one line what was recorded.
func heatLine(info *recording.Info) string {
	m := &info.Meta
	var facts []string
	add := func(known bool, format string, values ...any) {
		if known {
			facts = append(facts, fmt.Sprintf(format, values...))
		}
	}
	add(m.Mode != "", "%s mode", output.CleanName(m.Mode))
	add(info.Event != "" && m.Version == "", "%s", output.CleanName(info.Event))
	add(m.Interval > 0, "%.4g Hz", m.Rate())
	add(m.Duration > 0, "%s", output.Round(m.Duration))
	add(!m.Start.IsZero(), "%s", m.Start.Format("2006-01-02 15:04:05 MST"))
	add(m.PID > 0 && m.Host != "", "pid %d on %s", m.PID, output.CleanName(m.Host))
	add(m.PID > 0 && m.Host == "", "pid %d", m.PID)
	if s := info.Summary; s != nil && s.Quality != "" && s.Quality != profile.Good {
		add(true, "quality %s", output.CleanName(string(s.Quality)))
	}
	return strings.Join(facts, " \u00b7 ")
}

// heatAbout is what the page says of the recording: what is known of it, and its own account.
func heatAbout(info *recording.Info) (facts [][2]string) {
	add := func(known bool, name, format string, values ...any) {
		if known {
			facts = append(facts, [2]string{name, output.Printable(fmt.Sprintf(format, values...))})
		}
	}
	m := &info.Meta
	add(info.Name != "" && info.Name != output.Stdout, "file", "%s", info.Name)
	add(m.MainClass != "", "program", "%s", m.MainClass)
	add(m.PID > 0, "pid", "%d", m.PID)
	add(m.Host != "", "host", "%s", m.Host)
	add(m.JVM != "", "JVM", "%s", m.JVM)
	add(m.Collector != "", "collector", "%s", m.Collector)
	add(!m.Start.IsZero(), "recorded", "%s, for %s", m.Start.Format(time.RFC3339), m.Duration.Round(time.Millisecond))
	add(info.Event != "", "events", "%s", info.Event)
	if s := info.Summary; s != nil {
		add(s.Rate > 0, "rate", "%.4g Hz reached, %.4g Hz asked", s.RateReached, s.Rate)
		add(s.Quality != "" && s.Quality != profile.Good, "quality", "%s: %s", s.Quality, strings.Join(s.Doubts, "; "))
		add(true, "looks", "%d, of which %d gave a sample", s.Attempted, s.Samples)
		add(true, "truncated", "%d (%s)", s.Truncated, output.Percent(s.Truncated, s.Attempted))
		add(true, "lost", "%d (%s)", s.Lost, output.Percent(s.Lost, s.Attempted))
		p := &s.Pauses
		add(p.Count > 0, "pauses", "p50 %s, p99 %s, max %s", output.Round(p.P50), output.Round(p.P99), output.Round(p.Max))
		add(s.OwnCPU > 0, "goprof's CPU", "%s", output.Round(s.OwnCPU))
		for _, n := range s.Notes {
			add(true, "note", "%s", n.Text)
		}
	}
	for _, note := range info.Notes {
		add(true, "note", "%s", note)
	}
	add(m.Version != "", "recorded by", "goprof %s", m.Version)
	add(true, "drawn by", "goprof %s", version())
	return facts
}
