//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/product"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/session"
)

// recorder records one JVM into its own files.
type recorder struct {
	part           // that leads
	beside []*part // further ones
	out    *outputs
	ended  chan struct{}
	talk   io.Writer
	counts *jvmCounts // nil: not wanted

	// Of a loop.
	made    [][]*outfile.Made // that were not deleted yet, the oldest first
	loopErr error
}

// recordAll records all targets side by side until ctx is done, the time is over, or they have ended. If there are
// several errors, it returns the first and tells the others.
func recordAll(ctx context.Context, stderr io.Writer, f *recordFlags, targets []recordable,
	now <-chan os.Signal) error {
	talk := newStatusLine(stderr)
	f.talk = talk
	var recorders []*recorder
	warned := doubts{}
	for _, t := range targets {
		r, err := newRecorder(talk, f, t)
		if err != nil {
			closeAll(recorders)
			return err
		}
		warned.warn(talk, r.session.Doubts())
		recorders = append(recorders, r)
	}
	defer closeAll(recorders)
	makeRoom(len(recorders) * len(f.parts()))
	noMoreSignals := writeOnSignal(talk, recorders, now)
	noMoreProgress := showProgress(talk, f, recorders)
	results := make([]result, len(recorders))
	var all sync.WaitGroup
	for i, r := range recorders {
		all.Go(func() { results[i] = r.record(ctx) })
	}
	all.Wait()
	noMoreSignals()
	noMoreProgress()
	return tellAll(talk, f, recorders, results)
}

// newRecorder makes a recorder. It opens the files first: a name that cannot be written must not cost a recording.
func newRecorder(talk io.Writer, f *recordFlags, t recordable) (*recorder, error) {
	r := &recorder{ended: make(chan struct{}), talk: talk}
	for i, want := range f.parts() {
		p := part{flags: f, want: want, pid: t.pid, visits: make(chan session.Visit)}
		if i == 0 {
			p.session, r.part = t.session, p
		} else {
			r.beside = append(r.beside, &p)
		}
	}
	var err error
	if r.out, err = f.reserve(t.pid); err != nil {
		if t.session != nil {
			t.session.Close()
		}
		return nil, outputFailed(err)
	}
	for _, p := range r.parts() {
		if err := p.open(talk); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

// parts are all parts. The first one leads.
func (r *recorder) parts() []*part { return append([]*part{&r.part}, r.beside...) }

func (r *recorder) close() {
	for _, p := range r.parts() {
		p.close()
	}
}

func closeAll(recorders []*recorder) {
	for _, r := range recorders {
		r.close()
	}
}

type result struct {
	profile *profile.Profile
	summary profile.Summary
	at      profile.Instant // the end
	used    time.Duration   // CPU time of the whole process meanwhile
	err     error
}

func (r *result) recorded() *product.Recorded {
	return &product.Recorded{Profile: r.profile, Summary: &r.summary, At: r.at}
}

func (r *recorder) record(ctx context.Context) result {
	defer close(r.ended)
	if r.flags.rawNames {
		for _, p := range r.parts() {
			p.session.RawNames()
		}
	}
	if r.flags.jvmEvents {
		var err error
		if r.counts, err = r.countJVM(); err != nil {
			return result{err: err}
		}
		defer r.counts.close()
	}
	if r.flags.loop > 0 {
		return r.loop(ctx)
	}
	return r.once(ctx, r.flags.duration.Duration)
}

// once makes one recording, which becomes one file.
func (r *recorder) once(ctx context.Context, length time.Duration) result {
	ctx, stop := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, r.out.EndSoon)()
	if length > 0 {
		defer time.AfterFunc(length, r.out.EndSoon).Stop()
	}
	defer stop()
	before := r.session.CPUTime()
	sink := r.out.Start(r.session.Facts(), stop)
	stopCounting := r.counts.begin(ctx, r.out.Product)
	p, sum, err := r.recordParts(ctx, length, sink, stop)
	stopCounting()
	used := sum.Times.Process
	if used == 0 { // wall-clock modes do not measure it, and it lacks threads that are not wanted
		used = max(r.session.CPUTime()-before, 0)
	}
	return result{p, sum, r.session.Now(), used, err}
}

// visit calls f with the part that leads, between two samples. It returns false if the recording has ended.
func (r *recorder) visit(f session.Visit) bool { return r.visitPart(&r.part, f) }

// visitPart has the recording of p call f between two samples, and waits until f returns. It returns false if the
// recording has ended.
func (r *recorder) visitPart(p *part, f session.Visit) bool {
	done := make(chan struct{})
	select {
	case p.visits <- func(p *profile.Profile, s *profile.Summary) {
		defer close(done)
		f(p, s)
	}:
		select {
		case <-done:
			return true
		case <-r.ended: // it ended during f: the process's memory does not answer
			return false
		}
	case <-r.ended:
		return false
	}
}

// tellAll writes what was recorded and says so.
func tellAll(talk io.Writer, f *recordFlags, recorders []*recorder, results []result) error {
	var first error
	for i, r := range recorders {
		if len(recorders) > 1 && !f.quiet {
			io.WriteString(talk, output.AccountLine("Process", fmt.Sprint(r.pid)))
		}
		err := r.tell(talk, &results[i])
		switch {
		case err == nil:
		case first == nil:
			first = err
		default:
			exit.Tell(talk, err)
		}
	}
	return first
}

func (r *recorder) tell(talk io.Writer, res *result) error {
	if res.summary.AllSamples() == 0 {
		return r.tellEmpty(talk, res)
	}
	name, err := r.out.write(res.recorded())
	if err != nil {
		return outputFailed(err)
	}
	if !r.flags.quiet {
		r.tellAccount(talk, &res.summary)
		tellWritten(talk, name, r.flags.as, res.summary.Looks != nil)
	}
	if r.flags.loop > 0 {
		r.keepNewest(r.out)
	}
	if r.loopErr != nil {
		return r.loopErr
	}
	if res.err != nil {
		return attachError(r.pid, res.err)
	}
	theOpener.open(name)
	return nil
}

// tellEmpty ends a recording without samples. It writes no file of stacks: an empty file is useless, and could replace
// a full one. It writes the summary if the user asked for one, because that says what became of the looks.
func (r *recorder) tellEmpty(talk io.Writer, res *result) error {
	if err := r.out.leaveOut(res.recorded(), true); err != nil {
		return outputFailed(err)
	}
	if r.loopErr != nil {
		return r.loopErr
	}
	if res.err != nil {
		return attachError(r.pid, res.err)
	}
	if !r.flags.quiet {
		r.tellAccount(talk, &res.summary)
	}
	if len(r.made) > 0 { // only the last file of a loop is empty
		return nil
	}
	return r.noSamples(res)
}

// writeOnSignal writes what was recorded so far at each signal, until the returned function is called.
func writeOnSignal(talk io.Writer, recorders []*recorder, now <-chan os.Signal) (stop func()) {
	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-now:
				for _, r := range recorders {
					r.writeNow(talk)
				}
			}
		}
	})
	return func() {
		close(end)
		all.Wait()
	}
}

// writeNow writes what was recorded so far. The recording waits only while that is copied.
func (r *recorder) writeNow(talk io.Writer) {
	var now *profile.Profile
	var sum profile.Summary
	var out *outputs
	var hottest output.Hottest
	if !r.visit(func(p *profile.Profile, s *profile.Summary) {
		now, sum, out, hottest = p.Copy(), *s, r.out, r.hottest.SoFar()
	}) {
		return // it has ended, and is about to be written
	}
	for _, p := range r.beside {
		r.visitPart(p, func(_ *profile.Profile, s *profile.Summary) { sum.Parts = append(sum.Parts, p.further(s)) })
	}
	if sum.AllSamples() == 0 {
		fmt.Fprintf(talk, "goprof: no samples of process %d yet: nothing is written\n", r.pid)
		return
	}
	sum.Meta.Version, sum.Notes = version(), r.notes(&sum)
	hottest.Describe(&sum, output.TreeOf(now))
	name, err := out.writeSoFar(&product.Recorded{Profile: now, Summary: &sum, At: r.session.Now()})
	switch {
	case errors.Is(err, errDone): // a file of a loop was just finished, and holds all of it
	case errors.Is(err, product.ErrAtEnd): // its reader would count twice what is written twice
		fmt.Fprintln(talk, "goprof: SIGUSR1 writes what there is into a file (-o FILE); "+
			"what is not a file gets all of it at the end")
	case err != nil:
		exit.Tell(talk, outputFailed(err))
	case name != outfile.Stdout && !r.flags.quiet:
		fmt.Fprintf(talk, "goprof: %d samples so far are in %s\n", sum.AllSamples(), name)
	}
}

// tellNotes says what a user should know although all went well.
func tellNotes(talk io.Writer, notes []profile.Note) {
	for _, n := range notes {
		fmt.Fprintf(talk, "goprof: %s: %s\n", n.Name, output.Printable(n.Text))
		if n.Remedy != "" {
			fmt.Fprintf(talk, "try: %s\n", output.Printable(n.Remedy))
		}
	}
}
