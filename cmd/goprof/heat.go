package main

import (
	"cmp"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/caption"
	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/format"
	"goprof/output/heat"
	"goprof/output/outfile"
)

type heatFlags struct {
	output, title string
	pools, text   bool
	drawing       drawing
	in            inputFlags
}

func newHeat() *cobra.Command {
	var f heatFlags
	cmd := &cobra.Command{
		Use:   "heat FILE",
		Short: "Draw a recording over time: when it began, and what changed",
		Long: `heat reads a recording whose samples have times, and draws it as a page. Such a recording is a JFR
file of goprof, the JDK or async-profiler. Collapsed files and pprof profiles have no times. The page
holds all it needs: it can be mailed, and opened offline.

The upper part of the page shows time. Each column is a second, and each cell is 20 ms (more in long
recordings). Each pool of threads has a strip. Marks show the collections, safepoints and pauses
that the recording knows.

The lower part is the flame graph of the time that you select. Shift+drag selects a second time, and
the flame graph shows what differs. A click on a frame shows when it was seen.

Of a wall-clock recording the page first shows threads that run, or wait for a CPU, a monitor or a
file. One click adds the threads at rest: most of them have nothing to do.

--text says in words from when on shares differ, without a page: a thread waits since 12:03:20, or a
method got slower. It leaves out what noise explains. It compares shares of all samples, so twice the
load with the same shares is no change.

In the page, ? lists all keys. heat replaces an older page of the same recording,
and what -o names.`,
		Example: `  goprof record --pid 1234 -d 1m -o out.jfr && goprof heat out.jfr
  goprof heat out.jfr -o incident-4711.html --title "checkout, slow since 3:14"
  goprof heat out.jfr --text                     when did it change, in words
  goprof heat out.jfr --threads                  a strip for each thread
  goprof heat out.jfr --from 10m --to 12m --thread http
  goprof heat app.jfr --event wall               of recordings with several kinds of samples`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return drawHeat(cmd, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "",
		"write to `file`; - is standard output (default: beside FILE, .heat.html)")
	flags.StringVar(&f.title, "title", "", "the page's `title` (default: the program's name)")
	flags.BoolVar(&f.pools, "pools", false, "a strip for each pool of threads: pool-1-thread-* (default)")
	flags.BoolVar(&f.text, "text", false, "the moments at which it changes, as text on standard output")
	f.drawing.add(flags)
	addOpen(flags)
	f.in.add(cmd)
	flags.Lookup("threads").Usage = "a strip for each thread"
	return cmd
}

func drawHeat(cmd *cobra.Command, input string, f *heatFlags) error {
	if f.in.threads && f.pools {
		return usageError(cmd, "--threads and --pools exclude each other", without("threads"))
	}
	if f.text {
		return tellHeat(cmd, input, f)
	}
	p := drawn{f.output, "heat.html", format.Trim(input) + ".heat.html"}
	return p.draw(cmd, &f.in, input, func(in *openInput, file *outfile.File) (name, about string, err error) {
		in.notes(cmd)
		name, err = writeHeat(file, in, f)
		return name, "heat map: " + output.Printable(name), err
	})
}

// tellHeat writes the moments at which the recording changes.
func tellHeat(cmd *cobra.Command, input string, f *heatFlags) error {
	for _, flag := range []string{"output", "title", "pools", "threads", "open"} {
		if cmd.Flags().Changed(flag) {
			return usageError(cmd, "--text has no page, and so no --"+flag, without(flag))
		}
	}
	in, err := f.in.open(cmd, input)
	if err != nil {
		return err
	}
	defer in.Close()
	in.notes(cmd)
	to := writeErrors{to: cmd.OutOrStdout()}
	told := heat.Told{After: f.in.from}
	if input != outfile.Stdout {
		words := []string{input}
		chosen := []string{"event", "weight", "thread", "exclude-thread", "include", "exclude", "state"}
		for _, flag := range givenOf(cmd, chosen) {
			words = append(words, "--"+flag+"="+strings.Trim(cmd.Flags().Lookup(flag).Value.String(), "[]"))
		}
		told.Name = exit.CommandLine(words)
	}
	err = heat.Text(&to, in.src, told)
	switch {
	case to.err != nil:
		return exit.CannotWrite(to.err)
	case err != nil:
		return cannotDraw(in.name, err)
	}
	in.leftOut(cmd)
	return nil
}

// writeHeat draws the page. It reads samples while it draws, so its error may be about reading.
func writeHeat(file *outfile.File, in *openInput, f *heatFlags) (name string, err error) {
	info := in.src.Info()
	o := caption.Heat(version(), in.name, f.title, &info)
	o.Threads, o.Shape = f.in.threads, f.drawing.of(output.Shape{})
	var unread error
	name, err = file.Write(func(w io.Writer) error {
		page := writeErrors{to: w}
		err := heat.Write(&page, in.src, o)
		if page.err == nil {
			unread = err
		}
		return err
	})
	switch {
	case unread != nil:
		return "", cannotDraw(in.name, unread)
	case err != nil:
		return "", exit.CannotWrite(err)
	}
	return name, nil
}

type writeErrors struct {
	to  io.Writer
	err error
}

func (w *writeErrors) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// cannotDraw says why a recording cannot be drawn over time.
func cannotDraw(input string, err error) error {
	e := exit.CannotRead(input, err)
	switch {
	case errors.Is(err, heat.ErrNoTimes):
		e.What, e.Err, e.Why = "cannot draw "+input+" over time", nil,
			"it has sums only: collapsed stacks and pprof do not say when samples were taken"
		e.Remedy = "goprof record --pid PID -o FILE.jfr keeps the times; goprof flame " +
			exit.CommandLine([]string{input}) + " draws the sums"
	case errors.Is(err, heat.ErrEmpty):
		e.Code, e.What, e.Err, e.Why = exit.NoSamples, "nothing to draw", nil, "no samples are left of "+input
	}
	return e
}
