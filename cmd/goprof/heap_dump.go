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
	// measureFor is how long goprof measures its own speed, while the JVM runs.
	measureFor = 500 * time.Millisecond
	// standsLonger and standsAtLeast limit how long the JVM stands still: standsLonger times the expected time, and at
	// least standsAtLeast.
	standsLonger  = 10
	standsAtLeast = 10 * time.Second
	// mostStands limits the expected time. standsUnknown replaces it if it could not be measured.
	mostStands    = time.Hour
	standsUnknown = time.Minute
	// heapTries is how often goprof waits for the end of a collection, each time for nextTry.
	heapTries = 20
	nextTry   = 50 * time.Millisecond
	// lastWrite limits the wait for the writer after the JVM was released too early.
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
// runs, measures the speed, and discards the part.
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

// speed is the speed of a heap dump without its output.
type speed struct {
	used     uint64        // bytes of all objects
	prepared time.Duration // time until the first object
	bytes    uint64        // bytes of objects, and the time they took
	took     time.Duration
}

// measure makes a heap dump of the classes, and of objects for measureFor.
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

// round keeps about two digits of a time, up to mostStands.
func round(d time.Duration) time.Duration {
	unit := time.Millisecond
	for unit*100 < d {
		unit *= 10
	}
	return d.Round(unit)
}

// liveDump is a heap dump of a JVM that is stopped for it.
type liveDump struct {
	session *session.Session
	opt     heapdump.Options
	most    time.Duration
	ctx     context.Context
	res     *heapdump.Result
	stood   time.Duration
}

// write stops the JVM. If the JVM was in the middle of a collection, write stops it again a little later. Nothing is
// written in between.
func (d *liveDump) write(w io.Writer) (err error) {
	for try := 1; ; try++ {
		if err = d.once(w); !errors.Is(err, vmstructs.ErrMoving) || try == heapTries || d.ctx.Err() != nil {
			return err
		}
		time.Sleep(nextTry)
	}
}

// once stops the JVM once, and writes the heap dump. If the JVM must continue before the dump is complete, once returns
// an error after at most lastWrite.
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
		select { // it ends soon: only the file can delay it
		case <-done:
		case <-time.After(lastWrite):
		}
		return &convert.SourceError{Err: d.reason(err)}
	}
	r := <-done
	d.res = r.res
	if alive := d.session.Process.Alive(); alive != nil { // the memory of an ended process reads as damaged
		return &convert.SourceError{Err: alive}
	}
	if r.err != nil && !errors.As(r.err, new(*heapdump.WriteError)) {
		return &convert.SourceError{Err: r.err}
	}
	return r.err
}

// reason returns why all threads were released, or did not all stop.
func (d *liveDump) reason(err error) error {
	if d.ctx.Err() != nil {
		return heapdump.ErrCancelled
	}
	return err
}
