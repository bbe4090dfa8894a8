//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/heap/heapdump"
	"goprof/output"
	"goprof/output/convert"
	"goprof/session"
	"goprof/vmstructs"
)

const (
	// measureFor is how long goprof tries out how fast it is, while the JVM runs.
	measureFor = 500 * time.Millisecond
	// standsLonger and standsAtLeast bound how long the JVM stands still: so many times what was expected.
	standsLonger  = 10
	standsAtLeast = 10 * time.Second
	// heapTries is how often goprof waits for the end of a collection that it has met, nextTry for how long.
	heapTries = 20
	nextTry   = 50 * time.Millisecond
	// lastWrite is how long goprof waits for the writer once the JVM was let go too early.
	lastWrite = 2 * time.Second
)

// wantsDump reports whether a heap dump is to be written.
func (f *heapFlags) wantsDump() bool { return isHeapDump(f.output, "") }

// checkDump says what is wrong with the flags of a heap dump.
func (f *heapFlags) checkDump(cmd *cobra.Command) error {
	if !f.wantsDump() {
		if f.stop {
			return usageError(cmd, "--stop is for a heap dump: -o FILE.hprof")
		}
		return nil
	}
	for _, name := range []string{"area", "top", "all", "count", "every", "json"} {
		if cmd.Flags().Changed(name) {
			return usageError(cmd, "--"+name+" is not for heap dumps (-o FILE.hprof)")
		}
	}
	return nil
}

// dump writes a heap dump of a live JVM, which stands still meanwhile.
func (f *heapFlags) dump(cmd *cobra.Command, pid int) error {
	s, err := session.Attach(pid)
	if err != nil {
		return attachError(pid, err)
	}
	defer s.Close()
	if err := host().Traced(pid); err != nil {
		return attachError(pid, err)
	}
	what := fmt.Sprintf("cannot make a heap dump of process %d", pid)
	instead := fmt.Sprintf("goprof heap %d", pid)
	stands, about, err := expectStand(s)
	if err != nil {
		return heapDumpFailed(&convert.SourceError{Err: err}, what, instead)
	}
	if !f.stop {
		return &exit.Error{Code: exit.General, What: what + " while it runs",
			Why:    fmt.Sprintf("it has to stand still for %s", about),
			Remedy: fmt.Sprintf("goprof heap %d --stop -o %s", pid, f.output)}
	}
	out, err := output.Reserve(f.output)
	if err != nil {
		return outputFailed(err)
	}
	if out.IsStream() {
		return usageError(cmd, "a heap dump of a live JVM needs a file: the JVM would wait for the reader of "+f.output)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "goprof: process %d stands still for %s\n", pid, about)
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	d := liveDump{session: s, opt: heapDumpOptions(f.by), most: max(standsAtLeast, standsLonger*stands), ctx: ctx}
	_, err = out.Write(d.write)
	fmt.Fprintf(cmd.ErrOrStderr(), "goprof: process %d goes on, after %v\n", pid, d.stood.Round(time.Millisecond))
	if err != nil {
		return heapDumpFailed(err, what, instead)
	}
	tellHeapDump(cmd, f.output, d.res)
	return nil
}

// expectStand says how long the JVM would stand still. It makes a part of a heap dump while the JVM runs, which goes
// nowhere. Only its speed counts.
func expectStand(s *session.Session) (stands time.Duration, about string, err error) {
	heap, err := s.VM.NewHeap()
	if err != nil {
		return 0, "", err
	}
	var areas []*vmstructs.HeapArea
	for try := 1; ; try++ {
		if areas, err = heap.DumpAreas(); !errors.Is(err, vmstructs.ErrMoving) || try == heapTries {
			break
		}
		time.Sleep(nextTry)
	}
	if err != nil {
		return 0, "", err
	}
	used := uint64(0)
	for _, a := range areas {
		used += a.Top - a.Start - a.Free()
	}
	ctx, stop := context.WithTimeout(context.Background(), measureFor)
	defer stop()
	began := time.Now()
	res, _ := heapdump.Write(io.Discard, s.VM, heapdump.Options{At: began, Cancel: ctx.Done()})
	took := time.Since(began)
	if res == nil || res.Bytes == 0 {
		return 0, fmt.Sprintf("a time that could not be measured: %s of objects", output.Size(used)), nil
	}
	rate := float64(res.Bytes) / took.Seconds()
	stands = time.Duration(float64(used) / rate * float64(time.Second))
	return stands, fmt.Sprintf("about %v: %s of objects, %s a second", round(stands), output.Size(used),
		output.Size(uint64(rate))), nil
}

// round leaves two digits or so.
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

func (d *liveDump) once(w io.Writer) error {
	began := time.Now()
	type result struct {
		res *heapdump.Result
		err error
	}
	done := make(chan result, 1)
	err := d.session.Hold(d.most, func(threads func(func(*heapdump.Thread)), cut <-chan struct{}) {
		ended := make(chan struct{})
		defer close(ended)
		cancel := make(chan struct{})
		go func() {
			defer close(cancel)
			select {
			case <-cut:
			case <-d.ctx.Done():
			case <-ended:
			}
		}()
		opt := d.opt
		opt.Threads, opt.Cancel = threads, cancel
		res, err := heapdump.Write(w, d.session.VM, opt)
		done <- result{res, err}
	})
	d.stood = time.Since(began)
	if err != nil {
		select { // it ends soon: nothing waits for it but the file
		case <-done:
		case <-time.After(lastWrite):
		}
		return &convert.SourceError{Err: err}
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
