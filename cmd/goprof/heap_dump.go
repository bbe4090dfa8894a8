//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/heap/heapdump"
	"goprof/output"
	"goprof/output/convert"
	"goprof/output/outfile"
	"goprof/process"
	"goprof/session"
	"goprof/vmstructs"
)

const (
	// measureFor is how long goprof tries out how fast it is, while the JVM runs.
	measureFor = 500 * time.Millisecond
	// standsLonger and standsAtLeast bound how long the JVM stands still: so many times what was expected.
	standsLonger  = 10
	standsAtLeast = 10 * time.Second
	// mostStands bounds what is expected, standsUnknown stands for what could not be measured.
	mostStands    = time.Hour
	standsUnknown = time.Minute
	// heapTries is how often goprof waits for the end of a collection that it has met, nextTry for how long.
	heapTries = 20
	nextTry   = 50 * time.Millisecond
	// lastWrite is how long goprof waits for the writer once the JVM was let go too early.
	lastWrite = 2 * time.Second
)

func (f *heapFlags) wantsDump() bool { return isHeapDump(f.output, "") }

func (f *heapFlags) checkDump(cmd *cobra.Command) error {
	if !f.wantsDump() {
		if f.stop {
			return usageError(cmd, "--stop is for a heap dump: -o FILE.hprof")
		}
		return nil
	}
	for _, name := range []string{"area", "live", "top", "all", "count", "every", "json"} {
		if cmd.Flags().Changed(name) {
			return usageError(cmd, "--"+name+" is not for heap dumps (-o FILE.hprof)")
		}
	}
	return nil
}

// dump writes a heap dump of a live JVM, which stands still meanwhile.
func (f *heapFlags) dump(cmd *cobra.Command, pid int) error {
	out, err := outfile.Reserve(f.output)
	if err != nil {
		return exit.CannotWrite(err)
	}
	if out.IsStream() {
		return usageError(cmd, "a heap dump of a live JVM needs a file: the JVM would wait for the reader of "+f.output)
	}
	s, err := attach(cmd, pid, true)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	what := fmt.Sprintf("cannot make a heap dump of process %d", pid)
	instead := exit.CommandLine(without("output", "stop")(cmd, os.Args))
	stands, about, err := expectStand(ctx, s)
	if errors.Is(err, process.ErrSilent) {
		return exit.CannotLook(pid, err)
	} else if err != nil {
		return heapDumpFailed(&convert.SourceError{Err: err}, what, instead)
	}
	if !f.stop {
		return &exit.Error{Code: exit.General, What: what + " while it runs",
			Why: "it has to stand still for " + about, Remedy: exit.CommandLine(with("stop", "")(cmd, os.Args))}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "goprof: process %d stands still for %s\n", pid, about)
	d := liveDump{session: s, opt: heapDumpOptions(f.by), most: max(standsAtLeast, standsLonger*stands), ctx: ctx}
	_, err = out.Write(d.write)
	fmt.Fprintf(cmd.ErrOrStderr(), "goprof: process %d goes on, after %v\n", pid, d.stood.Round(time.Millisecond))
	if err != nil {
		return heapDumpFailed(err, what, instead)
	}
	tellHeapDump(cmd, f.output, d.res)
	return nil
}

// expectStand estimates how long the JVM would stand still for a heap dump. It makes a part of a dump while the JVM
// runs, measures the speed, and throws the part away.
func expectStand(ctx context.Context, s *session.Session) (stands time.Duration, about string, err error) {
	for try := 1; ; try++ {
		speed, err := session.Ask(s, func() (speed, error) { return measure(ctx, s.VM) })
		if errors.Is(err, process.ErrSilent) {
			return 0, "", err
		}
		if ctx.Err() != nil {
			return 0, "", heapdump.ErrCancelled
		}
		if !errors.Is(err, vmstructs.ErrMoving) || try == heapTries {
			stands, about = speed.stands()
			return stands, about, err
		}
		time.Sleep(nextTry)
	}
}

// speed is how fast a heap dump is, written to nowhere.
type speed struct {
	used     uint64        // bytes of all objects
	prepared time.Duration // what it took to come to the objects
	bytes    uint64        // so many bytes of objects took so long
	took     time.Duration
}

// measure makes heap dumps of classes, and of objects for measureFor.
func measure(ctx context.Context, vm *vmstructs.VM) (s speed, err error) {
	heap, err := vm.NewHeap()
	if err != nil {
		return s, err
	}
	areas, err := heap.DumpAreas()
	if err != nil {
		return s, err
	}
	for _, a := range areas {
		s.used += a.Top - a.Start - a.Free()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	objects := began
	res, err := heapdump.Write(io.Discard, vm, heapdump.Options{At: began, Cancel: ctx.Done(), Objects: func() {
		objects = time.Now()
		time.AfterFunc(measureFor, stop)
	}})
	if err != nil && !errors.Is(err, heapdump.ErrCancelled) {
		return s, err
	}
	s.prepared, s.took = objects.Sub(began), time.Since(objects)
	if res != nil {
		s.bytes = res.Bytes
	}
	return s, nil
}

func (s *speed) stands() (stands time.Duration, about string) {
	if s.bytes == 0 || s.took <= 0 {
		return standsUnknown, fmt.Sprintf("a time that could not be measured: %s of objects", output.Size(s.used))
	}
	rate := float64(s.bytes) / s.took.Seconds()
	seconds := min(float64(s.used)/rate, mostStands.Seconds())
	stands = min(s.prepared+time.Duration(seconds*float64(time.Second)), mostStands)
	return stands, fmt.Sprintf("about %v, without the disk: %s of objects, %s a second", round(stands),
		output.Size(s.used), output.Size(uint64(rate)))
}

// round leaves two digits or so of at most mostStands.
func round(d time.Duration) time.Duration {
	unit := time.Millisecond
	for unit*100 < d {
		unit *= 10
	}
	return d.Round(unit)
}

// liveDump is a heap dump of a JVM that stands still for it.
type liveDump struct {
	session *session.Session
	opt     heapdump.Options
	most    time.Duration
	ctx     context.Context
	res     *heapdump.Result
	stood   time.Duration
}

// write stops the JVM, and again a little later if that was in the middle of a collection. Nothing has been written
// then.
func (d *liveDump) write(w io.Writer) (err error) {
	for try := 1; ; try++ {
		if err = d.once(w); !errors.Is(err, vmstructs.ErrMoving) || try == heapTries || d.ctx.Err() != nil {
			return err
		}
		time.Sleep(nextTry)
	}
}

// once stops the JVM one time, and writes the heap dump while it stands still. If the JVM must go on before the dump is
// complete, once returns an error, and waits no longer than lastWrite for the writer.
func (d *liveDump) once(w io.Writer) error {
	type result struct {
		res *heapdump.Result
		err error
	}
	began, done := make(chan time.Time, 1), make(chan result, 1)
	err := d.session.Hold(d.ctx.Done(), d.most, func(threads func(func(*heapdump.Thread)), cut <-chan struct{}) {
		began <- time.Now()
		opt := d.opt
		opt.Threads, opt.Cancel = threads, cut
		res, err := heapdump.Write(w, d.session.VM, opt)
		done <- result{res, err}
	})
	select {
	case at := <-began:
		d.stood += time.Since(at)
	default: // not all threads have stopped
		return &convert.SourceError{Err: d.reason(err)}
	}
	if err != nil {
		select { // it ends soon: nothing waits for it but the file
		case <-done:
		case <-time.After(lastWrite):
		}
		return &convert.SourceError{Err: d.reason(err)}
	}
	r := <-done
	d.res = r.res
	if alive := d.session.Process.Alive(); alive != nil { // memory of one that has ended reads as damaged
		return &convert.SourceError{Err: alive}
	}
	if r.err != nil && !errors.As(r.err, new(*heapdump.WriteError)) {
		return &convert.SourceError{Err: r.err}
	}
	return r.err
}

// reason is why all threads were let go, or did not all stop.
func (d *liveDump) reason(err error) error {
	if d.ctx.Err() != nil {
		return heapdump.ErrCancelled
	}
	return err
}
