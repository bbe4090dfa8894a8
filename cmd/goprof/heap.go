//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/heap"
	"goprof/output"
	"goprof/output/flame"
	"goprof/output/outfile"
	"goprof/process"
	"goprof/profile"
	"goprof/sampler/guard"
	"goprof/session"
	"goprof/vmstructs"
)

const heapHelp = `heap counts what fills the heap of a JVM, by class: objects, bytes, and their share. It reads the
heap from outside. The JVM runs on meanwhile, collects nothing, and answers nothing. So heap works
on a JVM that hangs, is stopped or frozen, and on a JRE without tools.

Garbage counts, too. What lies in the old generation has stayed ("in old"). --area old shows that
part alone. --live also says how long ago the collector removed what was dead in it.

heap reads at most 200 MiB in one second. Of a larger heap it reads pieces that are drawn by lot, and
says how far each share may be off (+-, in 95 of 100 cases). --all reads everything. What a sample has
not met is not zero: a line says how many objects a class may have. docs/heap.md has the rest.

-n 6 --every 10s reads six times and says what grew in the old generation, how fast, and when the
generation will be full. -o heap.html is a page of packages and classes.

--leak says what grows and which static field, thread or other root holds it. --allocs 10s adds the
stacks that allocate it. --holders CLASS says who holds the objects of one class. Both draw objects by
lot and look for references to them. Each level of references is one more look through the heap.

What could not be read as objects is listed by reason, and is not part of any class: buffers of
threads, objects that are not whole yet, and what the collector moved meanwhile.

--core FILE reads the heap in a core file.

-o FILE.hprof writes a heap dump for Eclipse MAT, VisualVM and others. A live JVM has to stand still
for that. goprof measures first how long, and stops the JVM only with --stop. The JVM goes on when
the dump is complete, when goprof ends in whatever way, and at the latest after ten times as long.
With --redact, zeros stand for all numbers and texts. docs/heap-dump.md has the rest.`

const heapExample = `  goprof heap 1234                            or --pid 1234, or a part of its name
  goprof heap 1234 --area old                 what has stayed
  goprof heap 1234 --live                     what the last collection has left in the old generation
  goprof heap 1234 -n 6 --every 10s           what grows: a leak
  goprof heap 1234 --leak --allocs 10s        what leaks, who holds it, who makes it
  goprof heap 1234 --holders byte[]           who holds the objects of a class
  goprof heap 1234 --all                      all of it, however long that takes
  goprof heap 1234 -o heap.html               a page: parts, packages, classes, arrays by length
  goprof heap 1234 --json --redact default    pseudonyms in place of names
  goprof heap --core core.1234                what filled the heap when it died
  goprof heap 1234 -o heap.hprof              how long the JVM would stand still for a heap dump
  goprof heap 1234 -o heap.hprof --stop       a heap dump`

// heapFlags are the flags of heap as given.
type heapFlags struct {
	jvm       oneJVM
	core      coreFile
	shape     output.HeapShape
	json, all bool
	alive     bool
	output    string
	stop      bool // for a heap dump
	held      heldFlags
	readings
	redactFlags
}

const maxHeapLines = 100_000

func newHeap() *cobra.Command {
	f := &heapFlags{}
	cmd := &cobra.Command{
		Use:     "heap {PID | NAME | --ns-pid PID [NAME] | --core FILE}",
		Short:   "Show what fills the heap of a JVM, by class, and what grows",
		Long:    heapHelp,
		Example: heapExample,
		Args:    atMostOne,
	}
	cmd.RunE = f.runs(f.run, &f.output)
	fs := cmd.Flags()
	fs.SortFlags = false
	f.jvm.addFlags(cmd)
	f.core.addFlags(cmd)
	fs.StringVar(&f.shape.Area, "area", "", "show only this `part`: young, old, humongous")
	fs.BoolVar(&f.alive, "live", false,
		"show the old generation without what its last collection found dead, and how old that is")
	fs.IntVar(&f.shape.Top, "top", 30, "`number` of classes to show (--json: all, unless given)")
	fs.BoolVar(&f.all, "all", false, "read the whole heap, however long that takes")
	f.readings.add(fs)
	f.held.add(fs)
	fs.BoolVar(&f.json, "json", false, "write JSON")
	fs.StringVarP(&f.output, "output", "o", outfile.Stdout,
		"write to `file`: .html is a page, .svg a picture, .hprof a heap dump, others text")
	fs.BoolVar(&f.stop, "stop", false, "stop the JVM for the heap dump")
	f.redactFlags.add(cmd)
	return cmd
}

func (f *heapFlags) check(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	if err := f.checkHeld(cmd); err != nil {
		return err
	}
	switch {
	case f.shape.Area != "" && !slices.Contains([]string{"young", "old", "humongous"}, f.shape.Area):
		return usageError(cmd, fmt.Sprintf("--area is young, old or humongous, not %q", f.shape.Area),
			with("area", "old"))
	case f.alive && given("area"):
		return usageError(cmd, "--live shows the old generation and humongous objects: leave out --area", without("area"))
	case f.shape.Top < 1 || f.shape.Top > maxHeapLines:
		return usageError(cmd, fmt.Sprintf("--top is between 1 and %d", maxHeapLines), without("top"))
	case f.json && f.drawing() != nil:
		return usageError(cmd, fmt.Sprintf("--json does not write %s: leave one of them out", f.output), without("json"))
	}
	if err := f.readings.check(cmd); err != nil {
		return err
	}
	if f.alive {
		f.shape.Area = profile.HeapLive
	}
	if f.json && !given("top") {
		f.shape.Top = 0
	}
	if err := f.checkDump(cmd); err != nil {
		return err
	}
	return f.core.check(cmd, args, "pid", "ns-pid", "count", "every", "all", "stop", "leak", "allocs")
}

// run reads a core file or a live JVM.
func (f *heapFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.check(cmd, args); err != nil {
		return err
	}
	if isSnap(args) {
		if f.drawing() != nil || f.wantsDump() || f.shape.Area != "" {
			return usageError(cmd, args[0]+" holds the table of the whole heap as text and JSON",
				without("output", "area", "live"))
		}
		return showKept(cmd, args[0], "heap", keptFormat(f.json), f.output, f.by)
	}
	switch {
	case f.core.file != "":
		readFilesOnly(cmd, args)
	case f.wantsDump():
		defer watchOver()() // the guard later forbids starting programs
		guard.Enter(guard.ToDumpAndWrite)
	case f.held.allocs > 0:
		guard.Enter(guard.ToProbe)
	case f.output != outfile.Stdout:
		guard.Enter(guard.ToDumpAndWrite)
	default:
		guard.Enter(f.toDump(outfile.Stdout))
	}
	f.core.by = f.by
	if f.core.file != "" && f.wantsDump() {
		return f.core.writeHeapDump(cmd, f.output)
	} else if f.core.file != "" {
		return f.dead(cmd)
	}
	pid, err := f.jvm.find(cmd, args)
	if err != nil {
		return err
	} else if f.wantsDump() {
		return f.dump(cmd, pid)
	}
	return f.live(cmd, pid)
}

// live reads the heap of a live JVM, as often as -n says.
func (f *heapFlags) live(cmd *cobra.Command, pid int) error {
	s, err := attach(cmd, pid, false)
	if err != nil {
		return err
	}
	defer s.Close()
	out, err := outfile.Reserve(f.output)
	if err != nil {
		return exit.CannotWrite(err)
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	read := f.reader(ctx, s)
	if f.held.class != "" {
		return f.writeHolders(cmd, ctx, s, out)
	}
	f.held.began(s)
	var last *profile.Heap
	trend := &heap.Trend{}
	done, err := f.each(ctx, cmd.ErrOrStderr(), fmt.Sprintf("the heap of process %d", pid), func() (string, error) {
		h, err := read()
		if err != nil {
			return "", heapError(pid, err)
		}
		last = h
		if f.count > 1 {
			trend.Add(h)
		}
		return output.Size(h.Used()) + " used", nil
	})
	if err != nil {
		return err
	}
	if done == 0 {
		return &exit.Error{Code: exit.General, What: "interrupted before the heap was read"}
	}
	exit.TellNotes(cmd.ErrOrStderr(), notesOf(s, f.by))
	growth := trend.Growth()
	if f.count > 1 && growth == nil {
		last.Notes = append(last.Notes, tooFew(cmd.ErrOrStderr(), done, "none of the old generation was read in others"))
	}
	if f.held.leak {
		return f.writeLeaks(cmd, ctx, s, out, growth, done)
	}
	return f.write(cmd, out, last, growth)
}

// reader returns a function that reads the heap of a live JVM once. Memory that does not answer is an error.
func (f *heapFlags) reader(ctx context.Context, s *session.Session) func() (*profile.Heap, error) {
	var reader *heap.Reader
	mainClass := s.About().MainClass
	return func() (*profile.Heap, error) {
		h, err := session.Ask(s, func() (h *profile.Heap, err error) {
			if reader == nil {
				reader, err = heap.NewReader(s.VM)
			}
			if err == nil {
				opt := f.options(ctx)
				opt.Life = s.Life()
				h, err = reader.Read(opt)
			}
			return h, err
		})
		if errors.Is(err, process.ErrSilent) {
			return nil, err
		}
		if err = cmp.Or(s.Process.Alive(), err); err == nil { // the memory of an ended process reads as damaged
			f.name(h, s.Process.PID(), mainClass)
		}
		return h, err
	}
}

func (f *heapFlags) options(ctx context.Context) heap.Options {
	return heap.Options{All: f.all, Seed: uint64(time.Now().UnixNano()), Cancel: ctx.Done()}
}

// drawing returns a function that draws the heap, or nil if the heap is written as text.
func (f *heapFlags) drawing() func(io.Writer, *output.Tree, flame.Options) error {
	switch filepath.Ext(f.output) {
	case ".html":
		return flame.Page
	case ".svg":
		return flame.SVG
	}
	return nil
}

// draw draws the heap by parts, packages and classes.
func (f *heapFlags) draw(w io.Writer, h *profile.Heap, growth *profile.HeapGrowth) error {
	title := output.CleanName(cmp.Or(h.MainClass, "a heap"))
	var about [][2]string
	for i := range h.Parts {
		p := &h.Parts[i]
		about = append(about, [2]string{p.Name, fmt.Sprintf("%s, of which %s were looked at", output.Size(p.Used),
			output.Size(p.Seen))})
	}
	for _, note := range h.Notes {
		about = append(about, [2]string{"note", output.Printable(note)})
	}
	if growth != nil {
		for _, claim := range output.HeapGrowthClaims(growth) {
			about = append(about, [2]string{output.HeapGrowthTitle(growth), claim})
		}
		for _, c := range growth.Classes[:min(len(growth.Classes), f.shape.Top)] {
			about = append(about, [2]string{output.CleanName(c.Name), fmt.Sprintf("grows by %s +- %s a second",
				output.Size(uint64(c.Bytes.Rate)), output.Size(uint64(c.Bytes.Error)))})
		}
	}
	line := fmt.Sprintf("%s, %s used, garbage included; pid %d, %s", h.Collector, output.Size(h.Used()), h.PID,
		h.At.UTC().Format(time.RFC3339))
	if h.Sampled() {
		line += "; a sample"
	}
	if f.shape.Area != "" {
		h = h.Only(f.shape.Area)
	}
	return f.drawing()(w, output.HeapTree(h), flame.Options{Title: "What fills the heap of " + title, Line: line,
		About: about, Kinds: &output.HeapKinds})
}

// name adds pid and main class, and removes names that must be hidden.
func (f *heapFlags) name(h *profile.Heap, pid int, mainClass string) {
	if h.PID, h.MainClass = pid, mainClass; f.by != nil && !f.held.leak { // holders are looked up by name
		f.by.Heap(h)
	}
}

// heapError says why a heap cannot be read.
func heapError(pid int, err error) error {
	if errors.Is(err, vmstructs.ErrMissing) || errors.Is(err, vmstructs.ErrManyRegions) {
		return &exit.Error{Code: exit.General, What: fmt.Sprintf("the heap of process %d cannot be read", pid),
			Why: heap.Why(err), Remedy: fmt.Sprintf("jcmd %d GC.class_histogram -all", pid), Err: err}
	}
	return exit.CannotLook(pid, err)
}

// dead shows the heap of a core file: its classes, or with --holders the holders of a class's objects.
func (f *heapFlags) dead(cmd *cobra.Command) error {
	o, err := f.core.open(cmd)
	if err != nil {
		return err
	}
	defer o.Close()
	out, err := outfile.Reserve(f.output)
	if err != nil {
		return exit.CannotWrite(err)
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	f.all = true
	opt := f.options(ctx)
	opt.Life.Now = o.moment()
	reader, err := heap.NewReader(o.VM)
	mainClass, _, _ := strings.Cut(strings.TrimSpace(o.VM.JavaCommand()), " ")
	if err == nil && f.held.class != "" {
		held, err := reader.Holders(opt, []string{f.held.class}, nil)
		if err != nil {
			return f.noHolders(err, o.Core.PID())
		}
		held.PID, held.MainClass = o.Core.PID(), mainClass
		o.missing(cmd)
		return f.writeHeld(cmd, out, held)
	}
	var h *profile.Heap
	if err == nil {
		h, err = reader.Read(opt)
	}
	if err != nil {
		return &exit.Error{Code: exit.BadCore, What: "cannot read the heap out of " + f.core.file, Why: whyOf(err), Err: err}
	}
	f.name(h, o.Core.PID(), mainClass)
	o.missing(cmd)
	return f.write(cmd, out, h, nil)
}

// lacks returns an error if a heap lacks what is to be shown, and otherwise nil.
func (f *heapFlags) lacks(cmd *cobra.Command, h *profile.Heap) *exit.Error {
	e := &exit.Error{Code: exit.General, What: "what is alive is not known",
		Remedy: exit.CommandLine(without("live", "area")(cmd, os.Args))}
	switch {
	case f.alive && h.Swept != nil, !f.alive && (f.shape.Area == "" || h.Part(f.shape.Area) != nil):
		return nil
	case !f.alive:
		e.What = fmt.Sprintf("this heap has no part %q", f.shape.Area)
		e.Why = h.Collector + " has none, or none of it is used"
	case h.Collector == "Serial", h.Collector == "Parallel", h.Collector == "G1":
		e.Why = "the old generation was not collected yet, or that left dead objects where they are (G1 before JDK 20), " +
			"or this JVM does not count its collections"
	default:
		e.Why = h.Collector + " leaves dead objects where they are, and does not export which those are"
		if f.core.file == "" {
			e.Why += ". The JVM itself knows, but collects its whole heap for that, and stands still meanwhile"
			e.Remedy = fmt.Sprintf("jcmd %d GC.class_histogram", h.PID)
		}
	}
	return e
}

// write writes the last reading, and the growth if there are several.
func (f *heapFlags) write(cmd *cobra.Command, out *outfile.File, last *profile.Heap, growth *profile.HeapGrowth) error {
	if e := f.lacks(cmd, last); e != nil && growth == nil {
		return e
	} else if e != nil {
		last.Notes = append(last.Notes, e.What+" at the last reading: "+e.Why) // the earlier readings are still shown
	} else if f.alive && last.Collector == "G1" && *last.Swept < time.Minute {
		last.Notes = append(last.Notes, "that collection may still be removing what it found dead")
	}
	return putHeap(cmd, out, func(w io.Writer) error {
		if f.drawing() != nil {
			return f.draw(w, last, growth)
		}
		if f.json {
			return output.HeapJSON(w, last, growth, f.shape)
		}
		if err := output.HeapText(w, last, f.shape); err != nil || growth == nil {
			return err
		}
		return output.HeapGrowthText(w, growth, f.shape.Top)
	})
}

// putHeap writes the result, and reports its place.
func putHeap(cmd *cobra.Command, out *outfile.File, write func(io.Writer) error) error {
	name, err := out.Write(write)
	if err == nil && name != outfile.Stdout {
		fmt.Fprintf(cmd.ErrOrStderr(), "heap: %s\n", output.Printable(name))
	}
	return exit.CannotWrite(err)
}
