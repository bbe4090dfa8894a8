//go:build linux

package topscreen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/output/dumps"
	"goprof/output/outfile"
	"goprof/output/top"
	"goprof/process"
	"goprof/profile"
	"goprof/session"
	"goprof/triage/vitals"
)

// Options say what is watched, and how recordings begun by the user are made.
type Options struct {
	Interval time.Duration // between two readings of the screen
	Duration time.Duration // how long the screen is shown; 0: until the user quits
	Window   time.Duration // over which methods are summed up
	Rate     float64       // samples per second of CPU time
	Output   string        // name of recordings; empty: top-%p-%t.jfr
	RawNames bool
	Version  string // of goprof
}

// Watch gathers readings of a JVM. It has two sessions of the same process, so that neither waits for the other. One
// takes samples all the time. The other lists threads, looks at threads at rest, and dumps.
type Watch struct {
	o       Options
	pid     int
	samples *samples
	aside   *session.Session
	live    *session.Live
	vitals  *vitals.Vitals
	about   profile.Meta
	started time.Time

	last     moment // at the last reading
	stopSamp context.CancelFunc
}

// moment is the state at one moment. A reading is the difference of two moments.
type moment struct {
	at     time.Time
	cpu    map[int]time.Duration
	vitals *vitals.Reading
	own    time.Duration
	pauses profile.Pauses
}

// Open attaches to the process.
func Open(pid int, o Options) (*Watch, error) {
	first, err := session.Attach(pid)
	if err != nil {
		return nil, exit.CannotLook(pid, err)
	}
	w := &Watch{o: o, pid: pid, samples: newSamples(first, o, pid)}
	if w.aside, err = session.Attach(pid); err == nil {
		if err = exit.Host().Traced(pid); err == nil {
			w.vitals, err = vitals.Open(w.aside)
		}
	}
	if err != nil {
		if w.aside != nil {
			w.aside.Close()
		}
		first.Close()
		return nil, exit.CannotLook(pid, err)
	}
	if o.RawNames {
		first.RawNames()
		w.aside.RawNames()
	}
	w.live = w.aside.NewLive()
	w.about, w.started = w.aside.About(), w.aside.Started()
	w.vitals.OnlyWork()
	return w, nil
}

// Doubts returns what a user should know of the JVM.
func (w *Watch) Doubts() []string { return w.aside.Doubts() }

// begin takes samples until ctx is done, or for length.
func (w *Watch) begin(ctx context.Context, length time.Duration) {
	ctx, w.stopSamp = context.WithCancel(ctx)
	go w.samples.run(ctx, length)
}

// Close ends both sessions, and waits for their end.
func (w *Watch) Close() {
	if w.stopSamp != nil {
		w.stopSamp()
		<-w.samples.ended
	}
	w.live.Close()
	w.vitals.Close()
	w.aside.Close()
	w.samples.session.Close()
}

// Once makes one reading over length.
func (w *Watch) Once(ctx context.Context, length time.Duration) (*top.Reading, error) {
	if _, err := w.read(true); err != nil {
		return nil, err
	}
	w.begin(ctx, length)
	select {
	case <-w.samples.ended:
	case <-ctx.Done():
		<-w.samples.ended // the samples so far are shown
	}
	if w.samples.err != nil {
		return nil, w.samples.err
	}
	r, err := w.read(true)
	if err == nil {
		r.Window = r.Span
	}
	return r, err
}

// read makes a reading of the time since the last one. If all is set, it looks at every thread at rest.
func (w *Watch) read(all bool) (*top.Reading, error) {
	now := moment{at: time.Now(), cpu: map[int]time.Duration{}}
	threads, err := w.live.Read(all)
	if err != nil {
		return nil, err
	}
	if now.vitals, err = w.vitals.Read(); errors.Is(err, process.ErrGone) {
		return nil, err
	}
	now.own = session.OwnCPU()
	now.pauses = w.last.pauses
	if w.stopSamp != nil {
		if p, ok := w.samples.allPauses(); ok {
			now.pauses = p
		}
	}
	for i := range threads {
		now.cpu[threads[i].TID] = threads[i].CPU
	}
	before := w.last
	w.last = now
	if before.at.IsZero() {
		return nil, nil
	}
	r := w.compare(&before, &now, threads)
	r.Pools = w.pools(threads)
	return r, nil
}

// compare makes a reading from two moments.
func (w *Watch) compare(before, now *moment, threads []session.LiveThread) *top.Reading {
	span := now.at.Sub(before.at)
	r := &top.Reading{PID: w.pid, Main: w.about.MainClass, JVM: w.about.JVM, Collector: w.about.Collector,
		CPUs: runtime.NumCPU(), Span: span, Window: w.samples.window.Length()}
	if !w.started.IsZero() {
		r.Uptime = now.at.Sub(w.started)
	}
	for i := range threads {
		th := &threads[i]
		row := top.Thread{TID: th.TID, Name: th.Name, State: th.State, Frame: th.Frame,
			CPU: perTime(th.CPU-before.cpu[th.TID], span)}
		if th.Moving && th.Java {
			if seen, ok := w.samples.frame(th.TID); ok && seen.at.After(th.Seen) {
				row.Frame = seen.of(th.State)
			}
		}
		r.CPU += row.CPU
		r.Threads = append(r.Threads, row)
	}
	addVitals(r, before.vitals, now.vitals)
	r.Methods, r.Samples = w.samples.methods()
	r.Pauses = top.Pauses{Count: now.pauses.Count, P99: now.pauses.P99, Max: now.pauses.Max,
		Held: perTime(now.pauses.Total-before.pauses.Total, span)}
	r.Own = top.Cost{CPU: perTime(now.own-before.own, span), Memory: session.OwnMemory()}
	return r
}

// perTime returns the growth part as a share of the time of, never below 0.
func perTime(part, of time.Duration) float64 {
	if of <= 0 {
		return 0
	}
	return max(float64(part)/float64(of), 0)
}

// addVitals adds the facts from the JVM's own structures.
func addVitals(r *top.Reading, before, now *vitals.Reading) {
	if before == nil || now == nil {
		return
	}
	rates := vitals.Between(before, now)
	r.Alloc, r.AllocKnown = rates.Allocated.Get()
	r.GC.CPU, r.GC.Known = rates.CollectorCPU.Get()
	if n, ok := rates.Collections.Get(); ok {
		r.GC.Collections, r.GC.Counted = int64(n), true
	}
	if cpu, ok := rates.CPU.Get(); ok {
		r.CPU = cpu
	}
	alloc := make(map[int]float64, len(rates.Threads))
	for i := range rates.Threads {
		if rate, ok := rates.Threads[i].Allocated.Get(); ok {
			alloc[rates.Threads[i].TID] = rate
		}
	}
	for i := range r.Threads {
		th := &r.Threads[i]
		th.Alloc, th.AllocKnown = alloc[th.TID], false
		_, th.AllocKnown = alloc[th.TID]
	}
}

// dump writes a dump of all threads to a file, and returns its name.
func (w *Watch) dump() (string, error) {
	threads, err := w.aside.Dump(session.DumpOptions{})
	if err != nil {
		return "", exit.CannotLook(w.pid, err)
	}
	file, err := outfile.ReserveNumbered(outfile.Expand("dump-%p-%t.txt", w.pid, time.Now()), nil)
	if err != nil {
		return "", exit.CannotWrite(err)
	}
	profile.Order(threads)
	dump := &profile.Dump{Threads: threads}
	name, err := file.Write(func(to io.Writer) error { return dumps.Text(to, dump, dumps.Shape{}) })
	if err != nil {
		return "", exit.CannotWrite(err)
	}
	if late, leftOut, refused := session.NotStopped(threads); late+leftOut+refused > 0 {
		return fmt.Sprintf("%s (%d of %d threads without a stack: they could not be stopped)", name,
			late+leftOut+refused, len(threads)), nil
	}
	return name, nil
}

// stack returns the present stack of one thread.
func (w *Watch) stack(tid int) *top.Stack {
	th, err := w.aside.DumpThread(tid, session.DumpOptions{Depth: stackDepth, Wait: time.Second})
	switch {
	case errors.Is(err, process.ErrGone):
		return &top.Stack{TID: tid, Err: "the thread has ended"}
	case err != nil:
		return &top.Stack{TID: tid, Err: exit.CannotLook(w.pid, err).Error()}
	}
	return &top.Stack{TID: tid, Frames: th.Stack.Frames, State: th.State, Err: th.Err}
}

// stackDepth limits how many frames of a stack are shown.
const stackDepth = 512
