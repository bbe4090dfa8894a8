//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/heap"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/process"
	"goprof/profile"
	"goprof/session"
)

// heldFlags ask for the holders of objects, and for leaks.
type heldFlags struct {
	class  string
	leak   bool
	allocs time.Duration
	reader *heap.Reader
	known  []heap.Span // addresses of objects before the first reading
}

// leakReadings is how often --leak reads the heap by default.
const leakReadings = 6

func (h *heldFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&h.class, "holders", "", "show who holds the objects of this `class`, up to static fields and threads")
	fs.BoolVar(&h.leak, "leak", false, "show what grows, and who holds it (-n 6, unless given)")
	fs.Var(asTime(&h.allocs), "allocs",
		"with --leak: record allocations for so much `time`, and show who makes what leaks")
}

func (f *heapFlags) checkHeld(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	h := &f.held
	if given("allocs") && !h.leak {
		return usageError(cmd, "--allocs is for --leak", with("leak", ""))
	}
	if !h.leak && !given("holders") {
		return nil
	}
	switch {
	case h.leak && given("holders"):
		return usageError(cmd, "--leak looks for the holders of all classes that grow: leave out --holders",
			without("holders"))
	case given("holders") && h.class == "":
		return usageError(cmd, "--holders needs the name of a class, as goprof heap writes it", with("holders", "byte[]"))
	case given("area") || f.alive:
		return usageError(cmd, "--area and --live are not for --leak and --holders: objects that have stayed are looked at",
			without("area", "live"))
	case h.class != "" && given("count"):
		return usageError(cmd, "-n is for growth, and for --leak", without("count", "every"))
	case f.drawing() != nil || f.wantsDump():
		return usageError(cmd, "--leak and --holders write text or --json", without("output"))
	}
	if h.leak && !given("count") {
		f.count = leakReadings
	}
	if h.leak && f.count < profile.LeastReadings {
		return usageError(cmd, "--leak needs three readings or more", with("count", "6"))
	}
	return nil
}

// began reads which addresses hold objects before the first reading of --leak.
func (h *heldFlags) began(s *session.Session) {
	if !h.leak {
		return
	}
	found, err := session.Ask(s, func() (found heldFlags, err error) {
		if found.reader, err = heap.NewReader(s.VM); err == nil {
			found.known = found.reader.Tenured()
		}
		return found, err
	})
	if err == nil { // otherwise the first reading reports why
		h.reader, h.known = found.reader, found.known
	}
}

// holders finds the holders of some classes in a live JVM.
func (f *heapFlags) holders(ctx context.Context, s *session.Session, classes []string) (*profile.HeapHeld, error) {
	opt, reader, known := f.options(ctx), f.held.reader, f.held.known
	held, err := session.Ask(s, func() (held *profile.HeapHeld, err error) {
		if reader == nil {
			reader, err = heap.NewReader(s.VM)
		}
		if err == nil {
			held, err = reader.Holders(opt, classes, known)
		}
		return held, err
	})
	if errors.Is(err, process.ErrSilent) {
		return nil, err
	}
	if err = cmp.Or(s.Process.Alive(), err); err == nil {
		held.PID, held.MainClass = s.Process.PID(), s.About().MainClass
	}
	return held, err
}

func (f *heapFlags) writeHolders(cmd *cobra.Command, ctx context.Context, s *session.Session, out *outfile.File) error {
	held, err := f.holders(ctx, s, []string{f.held.class})
	if err != nil {
		return f.noHolders(err, s.Process.PID())
	}
	exit.TellNotes(cmd.ErrOrStderr(), notesOf(s, f.by))
	return f.writeHeld(cmd, out, held)
}

// noHolders returns why the holders of a class are not known.
func (f *heapFlags) noHolders(err error, pid int) error {
	if errors.Is(err, heap.ErrNoObjects) {
		return &exit.Error{Code: exit.General, What: "no object of the class " + output.CleanName(f.held.class) + " was met",
			Why:    "the heap has none, or the name differs from what goprof heap writes, or it was in no piece that was read",
			Remedy: fmt.Sprintf("goprof heap %d --all --top 1000", pid), Err: err}
	}
	return heapError(pid, err)
}

// writeLeaks is --leak: it shows who holds and who allocates the objects that grew.
func (f *heapFlags) writeLeaks(cmd *cobra.Command, ctx context.Context, s *session.Session, out *outfile.File,
	growth *profile.HeapGrowth, readings int) error {
	held := &profile.HeapHeld{At: time.Now(), PID: s.Process.PID(), MainClass: s.About().MainClass,
		Holders: []*profile.HeapHolders{}, Leaks: []*profile.HeapLeak{}}
	if growth == nil {
		return noGrowth(s.Process.PID(), readings)
	}
	if names := heap.Growers(growth); len(names) > 0 {
		found, err := f.holders(ctx, s, names)
		switch {
		case errors.Is(err, heap.ErrNoObjects):
		case err != nil:
			return f.noHolders(err, s.Process.PID())
		default:
			held = found
		}
	}
	heap.FindLeaks(held, growth)
	if f.held.allocs > 0 && len(held.Leaks) > 0 {
		if err := f.addAllocs(ctx, s, held); err != nil {
			held.Notes = append(held.Notes, "who allocates it is not known: "+err.Error())
		}
	}
	return f.writeHeld(cmd, out, held)
}

// noGrowth returns why several readings do not show what grows.
func noGrowth(pid, readings int) error {
	e := &exit.Error{Code: exit.General, What: "what leaks is not known", Why: "there are fewer than three readings",
		Remedy: "let it end by itself"}
	if readings >= profile.LeastReadings {
		e.Why, e.Remedy = "fewer than three readings read the old generation", fmt.Sprintf("goprof heap %d --leak --all", pid)
	}
	return e
}

// addAllocs records allocations, and adds the stacks that allocate the leaking classes.
func (f *heapFlags) addAllocs(ctx context.Context, s *session.Session, held *profile.HeapHeld) error {
	plan, err := s.FindEvent(profile.EventAlloc, 0)
	if err != nil {
		return err
	}
	defer plan.Close()
	stacks, _, err := s.Record(ctx, session.RecordOptions{Duration: f.held.allocs, Event: plan,
		Engine: session.PerfEngine, Weight: plan.Unit})
	if err == nil {
		heap.AddAllocs(held, stacks)
	}
	return err
}

func (f *heapFlags) writeHeld(cmd *cobra.Command, out *outfile.File, held *profile.HeapHeld) error {
	if f.by != nil {
		f.by.HeapHeld(held)
	}
	return putHeap(cmd, out, func(w io.Writer) error {
		if f.json {
			return output.WriteJSON(w, held)
		}
		return output.HeapHeldText(w, held, f.shape.Top)
	})
}
