//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/heap"
	"goprof/output"
	"goprof/process"
	"goprof/profile"
	"goprof/profile/redact"
	"goprof/sampler/guard"
	"goprof/session"
	"goprof/vmstructs"
)

const heapHelp = `heap counts what fills the heap of a JVM, by class: objects, bytes, and their share. It reads the
heap from outside. The JVM runs on meanwhile, collects nothing, and answers nothing. So heap works
on a JVM that hangs, is stopped or frozen, and on a JRE without tools.

Garbage counts, too. What lies in the old generation has stayed ("in old"). --area old shows that
part alone.

heap reads at most 200 MiB in one second. Of a larger heap it reads pieces that are drawn by lot, and
says how far each share may be off (+-, in 95 of 100 cases). --all reads everything.

-n 6 --every 10s reads six times and says what grew in the old generation, how fast, and when that
will be full.

What could not be read as objects is listed by reason, and is not part of any class: buffers of
threads, objects that are not whole yet, and what the collector moved meanwhile.

--core FILE reads the heap in a core file. docs/heap.md has the rest.`

const heapExample = `  goprof heap 1234                            or --pid 1234, or a part of its name
  goprof heap 1234 --area old                 what has stayed
  goprof heap 1234 -n 6 --every 10s           what grows: a leak
  goprof heap 1234 --all                      all of it, however long that takes
  goprof heap 1234 --json --redact default    without names that may not leave the house
  goprof heap --core core.1234                what filled the heap when it died`

// heapFlags are what the command line asks for.
type heapFlags struct {
	jvm       oneJVM
	core      coreFile
	shape     output.HeapShape
	json, all bool
	count     int
	every     durationFlag
	by        *redact.Redactor // nil: all names may be told
	redactFlags
}

const (
	heapEvery    = 10 * time.Second
	maxReadings  = 1000
	maxHeapLines = 100_000
)

func newHeap() *cobra.Command {
	f := &heapFlags{}
	cmd := &cobra.Command{
		Use:     "heap {PID | NAME | --ns-pid PID [NAME] | --core FILE}",
		Short:   "Show what fills the heap of a JVM, by class, and what grows",
		Long:    heapHelp,
		Example: heapExample,
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.by, err = f.redactor(cmd, output.Stdout); err != nil {
				return err
			}
			err = f.run(cmd, args)
			if mapErr := f.writeMap(); mapErr != nil {
				return mapErr
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.jvm.addFlags(cmd)
	f.core.addFlags(cmd)
	fs.StringVar(&f.shape.Area, "area", "", "show only this `part`: young, old, humongous")
	fs.IntVar(&f.shape.Top, "top", 30, "`number` of classes to show")
	fs.BoolVar(&f.all, "all", false, "read the whole heap, however long that takes")
	fs.IntVarP(&f.count, "count", "n", 1, "`number` of readings")
	fs.Var(&f.every, "every", "`time` from one reading to the next, with -n (10s)")
	fs.BoolVar(&f.json, "json", false, "write JSON")
	f.redactFlags.add(cmd)
	return cmd
}

func (f *heapFlags) check(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	switch {
	case f.shape.Area != "" && !slices.Contains([]string{"young", "old", "humongous"}, f.shape.Area):
		return usageError(cmd, fmt.Sprintf("--area is young, old or humongous, not %q", f.shape.Area),
			with("area", "old"))
	case f.shape.Top < 1 || f.shape.Top > maxHeapLines:
		return usageError(cmd, fmt.Sprintf("--top is between 1 and %d", maxHeapLines), without("top"))
	case f.count < 1 || f.count > maxReadings:
		return usageError(cmd, fmt.Sprintf("-n is between 1 and %d", maxReadings), with("count", "6"))
	case f.count == 2:
		return usageError(cmd, "-n is 3 or more to see growth: two readings do not show how sure it is",
			with("count", "6"))
	case given("every") && f.count == 1:
		return usageError(cmd, "--every says when the next reading comes: -n N is missing", with("count", "6"))
	}
	if f.every.Duration == 0 {
		f.every.Duration = heapEvery
	}
	return f.core.check(cmd, args, "pid", "ns-pid", "count", "every", "all")
}

// run finds out what to read: a core file, or a live JVM.
func (f *heapFlags) run(cmd *cobra.Command, args []string) error {
	if f.core.file != "" {
		readFilesOnly(cmd, args)
	} else {
		guard.Enter(f.toDump(output.Stdout))
	}
	if err := f.check(cmd, args); err != nil {
		return err
	}
	if f.core.file != "" {
		return f.dead(cmd)
	}
	pid, err := f.jvm.find(cmd, args)
	if err != nil {
		return err
	}
	return f.live(cmd, pid)
}

// live reads the heap of a JVM that runs, as often as was asked for.
func (f *heapFlags) live(cmd *cobra.Command, pid int) error {
	s, err := session.Attach(pid)
	if err != nil {
		return attachError(pid, err)
	}
	defer s.Close()
	doubts{}.warn(cmd.ErrOrStderr(), s.Doubts())
	out, err := output.Reserve(output.Stdout)
	if err != nil {
		return outputFailed(err)
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	read := f.reader(ctx, s)
	var readings []*profile.Heap
	for next := time.Now(); len(readings) < f.count && sleepUntil(ctx, next); next = next.Add(f.every.Duration) {
		h, err := read()
		if err != nil && len(readings) == 0 {
			return heapError(pid, err)
		} else if err != nil { // the readings before the error remain
			fmt.Fprintf(cmd.ErrOrStderr(), "goprof: the heap of process %d cannot be read any more: %d of %d readings\n", pid,
				len(readings), f.count)
			break
		}
		if readings = append(readings, h); f.count > 1 {
			fmt.Fprintf(cmd.ErrOrStderr(), "goprof: reading %d of %d: %s used\n", len(readings), f.count,
				output.Size(h.Used()))
		}
	}
	if len(readings) == 0 {
		return &exit.Error{Code: exit.General, What: "interrupted before the heap was read"}
	}
	tellNotes(cmd.ErrOrStderr(), notesOf(s, f.by))
	return f.write(out, readings)
}

// reader makes what reads the heap of a live JVM once. Memory that does not answer is an error.
func (f *heapFlags) reader(ctx context.Context, s *session.Session) func() (*profile.Heap, error) {
	var reader *heap.Reader
	mainClass := s.About().MainClass
	return func() (*profile.Heap, error) {
		type result struct {
			heap *profile.Heap
			err  error
		}
		done := make(chan result, 1)
		if !s.Guarded(func() {
			var r result
			if reader == nil {
				reader, r.err = heap.NewReader(s.VM)
			}
			if r.err == nil {
				r.heap, r.err = reader.Read(f.options(ctx))
			}
			done <- r
		}) {
			return nil, process.ErrSilent
		}
		r := <-done
		if r.err = cmp.Or(s.Process.Alive(), r.err); r.err == nil { // memory of one that has ended reads as damaged
			f.name(r.heap, s.Process.PID(), mainClass)
		}
		return r.heap, r.err
	}
}

func (f *heapFlags) options(ctx context.Context) heap.Options {
	return heap.Options{All: f.all, Seed: uint64(time.Now().UnixNano()), Cancel: ctx.Done()}
}

// name says whose heap it is, and takes out names that may not be told.
func (f *heapFlags) name(h *profile.Heap, pid int, mainClass string) {
	if h.PID, h.MainClass = pid, mainClass; f.by != nil {
		f.by.Heap(h)
	}
}

// heapError puts into words why a heap cannot be read.
func heapError(pid int, err error) error {
	if errors.Is(err, vmstructs.ErrMissing) {
		return &exit.Error{Code: exit.General, What: fmt.Sprintf("the heap of process %d cannot be read", pid),
			Why:    "this JVM, or its collector, does not say where the objects of its heap are",
			Remedy: fmt.Sprintf("jcmd %d GC.class_histogram -all", pid), Err: err}
	}
	return attachError(pid, err)
}

// dead reads the heap in a core file. All of it is read.
func (f *heapFlags) dead(cmd *cobra.Command) error {
	f.core.by = f.by
	o, err := f.core.open(cmd)
	if err != nil {
		return err
	}
	defer o.Close()
	out, err := output.Reserve(output.Stdout)
	if err != nil {
		return outputFailed(err)
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	f.all = true
	reader, err := heap.NewReader(o.VM)
	var h *profile.Heap
	if err == nil {
		h, err = reader.Read(f.options(ctx))
	}
	if err != nil {
		return &exit.Error{Code: exit.BadCore, What: "cannot read the heap out of " + f.core.file, Why: whyOf(err), Err: err}
	}
	mainClass, _, _ := strings.Cut(strings.TrimSpace(o.VM.JavaCommand()), " ")
	f.name(h, o.Core.PID(), mainClass)
	o.missing(cmd)
	return f.write(out, []*profile.Heap{h})
}

// write writes the last reading, and how the heap grew if there are several.
func (f *heapFlags) write(out *output.File, readings []*profile.Heap) error {
	last, growth := readings[len(readings)-1], heap.Growth(readings)
	if f.shape.Area != "" && last.Part(f.shape.Area) == nil {
		return &exit.Error{Code: exit.General, What: fmt.Sprintf("this heap has no part %q", f.shape.Area),
			Why: last.Collector + " has none, or none of it is used", Remedy: "the same command without --area"}
	}
	_, err := out.Write(func(w io.Writer) error {
		if f.json {
			return output.HeapJSON(w, last, growth)
		}
		if err := output.HeapText(w, last, f.shape); err != nil || growth == nil {
			return err
		}
		return output.HeapGrowthText(w, growth, f.shape.Top)
	})
	if err != nil {
		return outputFailed(err)
	}
	return nil
}
