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

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/dumps"
	"goprof/process"
	"goprof/profile"
	"goprof/profile/contention"
	"goprof/profile/naming"
	"goprof/profile/redact"
	"goprof/session"
)

// run takes the requested dumps, and writes them.
func (d *dumper) run(cmd *cobra.Command) error {
	defer session.StopAfterSuspend()()
	s, err := attach(cmd, d.pid, !d.live.NonBlocking)
	if err != nil {
		return err
	}
	defer s.Close()
	if d.raw {
		s.RawNames()
	}
	if d.opt.Virtual && !s.HasVirtual() {
		return exit.CannotLook(d.pid, session.ErrNoVirtual)
	}
	if err := s.LocksKnown(); err != nil && d.live.Locks {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: locks are not shown: %v\n", err)
		d.live.Locks = false
	}
	out, err := reserveDump(d.output)
	if err != nil {
		return err
	}
	if d.count > 1 {
		return d.series(cmd, s, out)
	}
	dump, incomplete, err := d.take(cmd, s)
	if err != nil {
		return err
	}
	exit.TellNotes(cmd.ErrOrStderr(), notesOf(s, d.by))
	if err := out.write(true, func(w io.Writer) error { return d.write(w, dump) }); err != nil {
		return err
	}
	return incomplete
}

// take takes one dump. If stacks are missing, incomplete says why, and the dump is still shown.
func (d *dumper) take(cmd *cobra.Command, s *session.Session) (dump *profile.Dump, incomplete, err error) {
	dump = s.NewDump()
	if d.live.Virtual = nil; d.live.Locks && s.HasVirtual() {
		d.live.Virtual, d.live.Find = &dump.Waits, findVirtual
	}
	threads, err := s.Dump(d.live)
	switch {
	case errors.Is(err, process.ErrSilent) && len(threads) > 0:
		incomplete = exit.CannotLook(d.pid, err)
	case errors.Is(err, session.ErrNoLocks) && len(threads) > 0:
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: locks are not shown: %s\n", output.Printable(err.Error()))
	case err != nil:
		return nil, nil, exit.CannotLook(d.pid, err)
	}
	if d.opt.Virtual && incomplete == nil {
		unmounted, census, err := s.DumpVirtual(d.live)
		if err != nil {
			incomplete = exit.CannotLook(d.pid, err)
		}
		threads, dump.Virtual = withLocks(threads, unmounted), &census
		tellCensus(cmd.ErrOrStderr(), dump.Virtual)
	} else if !d.opt.Virtual {
		threads = contention.OnlyDeadlocked(threads)
	}
	if d.shape.Pools && incomplete == nil {
		if dump.Pools, err = s.Pools(); err == nil {
			err = s.Peers(threads)
		}
		if err != nil {
			incomplete = exit.CannotLook(d.pid, err)
		}
	}
	tellVirtualWaits(cmd.ErrOrStderr(), &dump.Waits)
	dump.Threads = threads
	if d.hideInternal {
		naming.FoldDump(dump)
	}
	profile.Order(threads)
	dump.Deadlocks = contention.Deadlocks(threads)
	if incomplete == nil {
		incomplete = notStopped("dump", d.pid, threads, cmp.Or(d.live.Wait, session.DumpWait))
	}
	if d.by != nil {
		d.by.Dump(dump)
	}
	if d.format == dumpAsJstack { // readers of jstack's dumps do not know such lines
		tellUnconfirmed(cmd.ErrOrStderr(), threads)
		if note := dump.StoppedNote(); note != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "goprof: process %d is %s\n", d.pid, output.Printable(note))
		}
	}
	return dump, incomplete, nil
}

// findVirtual limits how long each dump searches for virtual threads that wait for locks.
const findVirtual = time.Second

// withLocks appends the virtual threads without a carrier. Some of them are already in threads with their locks, but
// without a stack. These get their stack.
func withLocks(threads, unmounted []profile.ThreadDump) []profile.ThreadDump {
	at := map[uint64]int{}
	for i := range threads {
		if v := threads[i].Virtual; v != nil {
			at[v.ID] = i
		}
	}
	for _, t := range unmounted {
		if i, ok := at[t.Virtual.ID]; !ok {
			threads = append(threads, t)
		} else if len(threads[i].Stack.Frames) == 0 {
			t.WaitsFor, t.Holds, t.Unconfirmed = threads[i].WaitsFor, threads[i].Holds, threads[i].Unconfirmed
			threads[i] = t
		}
	}
	return threads
}

func (d *dumper) write(w io.Writer, dump *profile.Dump) error {
	return writeDump(w, dump, d.format, d.shape)
}

// series takes several dumps. It writes text after each dump, or JSON at the end.
func (d *dumper) series(cmd *cobra.Command, s *session.Session, out *dumpFile) error {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	dumps, incomplete, err := d.takeAll(ctx, cmd, s, func(dumps []*profile.Dump) error {
		return d.writeNext(out, dumps)
	})
	if err != nil {
		return err
	}
	exit.TellNotes(cmd.ErrOrStderr(), notesOf(s, d.by))
	if err := out.write(true, func(w io.Writer) error { return d.writeEnd(w, dumps) }); err != nil {
		return err
	}
	return incomplete
}

// takeAll takes the requested dumps, and calls then after each. Dumps before an error or an interruption are kept.
func (d *dumper) takeAll(ctx context.Context, cmd *cobra.Command, s *session.Session,
	then func([]*profile.Dump) error) (dumps []*profile.Dump, incomplete, err error) {
	d.live.Cancel = ctx
	next := time.Now()
	for len(dumps) < d.count && sleepUntil(ctx, next) {
		dump, lacks, err := d.take(cmd, s)
		if err != nil && ctx.Err() != nil { // the dump under way is incomplete
			break
		} else if err != nil && len(dumps) > 0 { // the dumps before the error are kept
			fmt.Fprintf(cmd.ErrOrStderr(), "goprof: process %d cannot be looked at any more: %d of %d dumps\n",
				d.pid, len(dumps),
				d.count)
			break
		} else if err != nil {
			return nil, nil, err
		}
		incomplete = cmp.Or(incomplete, lacks)
		dumps = append(dumps, dump)
		if err := then(dumps); err != nil {
			return nil, nil, err
		}
		if len(dumps) < d.count {
			sleepUntil(ctx, time.Now().Add(min(settleTime, d.every/4)))
			s.Settle(dump.Threads)
		}
		next = dump.At.Add(d.every)
	}
	if len(dumps) == 0 {
		return nil, nil, &exit.Error{Code: exit.General, What: "interrupted before the first dump was complete"}
	}
	return dumps, incomplete, nil
}

// notesOf returns the notes about a JVM. If by is not nil, names are redacted.
func notesOf(s *session.Session, by *redact.Redactor) []profile.Note {
	notes := exit.Host().Notes(s)
	if by != nil {
		notes = by.Notes(notes)
	}
	return notes
}

// settleTime is the time that stopped threads get to continue their work. Their CPU time in it does not count.
const settleTime = 200 * time.Millisecond

// sleepUntil returns false if ctx ended first.
func sleepUntil(ctx context.Context, when time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(when)):
		return ctx.Err() == nil
	}
}

// writeNext writes the latest dump. JSON is one text, so it is written at the end.
func (d *dumper) writeNext(out *dumpFile, dumps []*profile.Dump) error {
	if d.format == dumpAsJSON {
		return nil
	}
	return out.write(false, func(w io.Writer) error { return d.writeLast(w, dumps) })
}

// writeLast writes the latest dump.
func (d *dumper) writeLast(w io.Writer, dumps []*profile.Dump) error {
	if len(dumps) > 1 {
		fmt.Fprintln(w)
	}
	if d.format == dumpAsText {
		fmt.Fprintf(w, "=== dump %d of %d\n", len(dumps), d.count)
	}
	return d.write(w, dumps[len(dumps)-1])
}

// writeAll writes all dumps, and their comparison.
func (d *dumper) writeAll(w io.Writer, dumps []*profile.Dump) error {
	for i := range dumps {
		if d.format == dumpAsJSON {
			break
		}
		if err := d.writeLast(w, dumps[:i+1]); err != nil {
			return err
		}
	}
	return d.writeEnd(w, dumps)
}

// writeEnd writes the comparison of all dumps. Tools that read jstack's dumps make their own.
func (d *dumper) writeEnd(w io.Writer, all []*profile.Dump) error {
	switch d.format {
	case dumpAsJSON:
		return dumps.SeriesJSON(w, all, d.shape)
	case dumpAsText:
		return dumps.MovesText(w, all)
	}
	return nil
}
