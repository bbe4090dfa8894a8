//go:build linux

package agent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"goprof/diagnose"
	"goprof/process/maybe"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
	"goprof/sampler"
)

// fakeWorld is a host of made-up JVMs.
type fakeWorld struct {
	mu       sync.Mutex
	jvms     map[int]*fakeJVM
	own      time.Duration
	dear     time.Duration // what it costs to attach
	begins   time.Duration // what it costs to begin a recording
	growth   int64         // what LetGrow was told last
	interval time.Duration
	attached map[int]int
	blind    bool
	live     int64  // memory of goprof for each JVM that is recorded
	garbage  int64  // memory of JVMs that have ended
	cycles   uint64 // cycles of the garbage collector
	holding  int
}

type fakeJVM struct {
	diagnose.JVM
	started time.Duration
	comm    string
	cpu     time.Duration
	fails   error
	gone    chan struct{}
	st      sampler.Stats
	share   float64
	stopped bool
	fixed   bool
	beside  map[string]*fakeBeside // events that are recorded
	notes   []profile.Note         // of its end
}

func newFakeWorld() *fakeWorld { return &fakeWorld{jvms: map[int]*fakeJVM{}, attached: map[int]int{}} }

func (w *fakeWorld) start(pid int, name string) *fakeJVM {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := &fakeJVM{JVM: diagnose.JVM{PID: pid, Main: name, User: "app"}, started: time.Duration(pid), comm: "java",
		gone: make(chan struct{}), share: 1}
	w.jvms[pid] = j
	return j
}

func (w *fakeWorld) stop(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.jvms[pid].gone)
	delete(w.jvms, pid)
}

func (w *fakeWorld) use(pid int, cpu time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jvms[pid].cpu += cpu
}

func (w *fakeWorld) PIDs() (pids []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blind {
		return nil
	}
	pids = []int{}
	for pid := range w.jvms {
		pids = append(pids, pid)
	}
	return pids
}

func (w *fakeWorld) Brief(pid int) (diagnose.Brief, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jvms[pid]
	if j == nil {
		return diagnose.Brief{}, false
	}
	state := byte('S')
	if j.stopped {
		state = 'T'
	}
	return diagnose.Brief{Started: j.started, Comm: j.comm, Threads: 20, State: state, Space: 1 << 30}, true
}

func (w *fakeWorld) Glance(pid int, _ bool) (diagnose.JVM, maybe.Value[bool]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jvms[pid]; j != nil && j.comm == "java" {
		return j.JVM, maybe.Known(true)
	}
	return diagnose.JVM{}, maybe.Known(false)
}

func (w *fakeWorld) Place(*Candidate) {}

func (w *fakeWorld) CPU(pid int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jvms[pid]; j != nil {
		return j.cpu
	}
	return 0
}

func (w *fakeWorld) Attach(pid int) (Target, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attached[pid]++
	w.own += w.dear
	j := w.jvms[pid]
	if j == nil {
		return nil, errors.New("gone")
	}
	if j.fails != nil {
		return nil, j.fails
	}
	return &fakeTarget{w, j}, nil
}

func (w *fakeWorld) Explain(pid int, err error) diagnose.Cause {
	if err == errStarts {
		return diagnose.Cause{Name: "starting", Why: err.Error(), Class: diagnose.NotJVM}
	}
	return diagnose.Cause{Name: "unsupported", Why: err.Error(), Class: diagnose.NotJVM}
}

var errStarts = errors.New("it starts")

func (w *fakeWorld) Own() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own
}

// Memory grows with the number of recordings.
func (w *fakeWorld) Memory() (int64, uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(w.holding)*w.live + w.garbage, w.cycles
}

func (w *fakeWorld) hold(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holding += n
}

func (w *fakeWorld) LetGrow(_, growth int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.growth = growth
}

func (w *fakeWorld) CPUs() int { return 2 }

func (w *fakeWorld) SetInterval(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interval = d
}

type fakeTarget struct {
	w *fakeWorld
	j *fakeJVM
}

func (t *fakeTarget) Tell(j *Candidate) { j.Version = "21.0.1" }
func (t *fakeTarget) Close()            {}
func (t *fakeTarget) Alive() bool {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.w.jvms[t.j.PID] == t.j
}

func (t *fakeTarget) Resource() (a resource.Attributes) {
	a.Set(resource.ServiceName, t.j.Main)
	return a
}

// Record takes one sample and waits.
func (t *fakeTarget) Record(ctx context.Context, how Recording) (profile.Summary, error) {
	how.Sink.Begin(profile.Instant{}, profile.Meta{PID: t.j.PID})
	how.Sink.Sample(&profile.Sample{Stack: &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "a.b"}}}}})
	t.w.mu.Lock()
	t.w.own += t.w.begins
	t.w.mu.Unlock()
	for i := range how.Beside {
		t.recordBeside(&how.Beside[i])
	}
	how.Started(t) // last: beats waits until the agent knows of it
	t.w.hold(1)
	defer t.w.hold(-1)
	select {
	case <-ctx.Done():
	case <-t.j.gone:
	}
	return profile.Summary{Notes: t.j.notes}, nil
}

func (t *fakeTarget) Govern(_ time.Duration, share float64) bool {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if t.j.fixed {
		return false
	}
	t.j.share = share
	return true
}

func (t *fakeTarget) Latest() sampler.Stats {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.j.st
}

// driven is an agent with a clock of its own. The test makes its beats.
type driven struct {
	*Agent
	w       *fakeWorld
	now     time.Time
	batches []*batch.Batch
	said    []string
	ctx     context.Context
}

func drive(t *testing.T, s Settings) *driven {
	t.Helper()
	d := &driven{w: newFakeWorld(), now: time.Now()}
	var stop context.CancelFunc
	d.ctx, stop = context.WithCancel(context.Background())
	d.Agent = New(d.w, s, func(b *batch.Batch) { d.batches = append(d.batches, b) },
		func(text string) { d.said = append(d.said, text) })
	d.begin()
	t.Cleanup(func() {
		stop()
		d.end()
	})
	return d
}

// mostWaits is for how many milliseconds tests wait for other goroutines. It bounds a hang.
const mostWaits = 60_000

// beats lets n seconds pass.
func (d *driven) beats(n int) {
	for range n {
		d.now = d.now.Add(time.Second)
		d.beat(d.ctx, d.now)
		for wait := 0; d.opening() && wait < mostWaits; wait++ { // attaching sends events
			select {
			case e := <-d.events:
				d.handle(e)
			case <-time.After(time.Millisecond):
			}
		}
		d.drain()
	}
}

// opening tells whether some recording has not begun yet.
func (d *driven) opening() bool {
	for _, g := range d.guests {
		if g.record != nil && g.record.control == nil {
			return true
		}
	}
	return false
}

func (d *driven) stateOf(pid int) guestState { return d.guests[pid].state }

// fakeBeside is an event of a fakeJVM.
type fakeBeside struct {
	w       *fakeWorld
	share   float64
	st      sampler.Stats
	dropped bool
	resumes int
	begin   func() // begins it anew
}

// recordBeside takes one sample of an event. There is none called "none".
func (t *fakeTarget) recordBeside(b *Beside) {
	b.Begin()
	if b.Event.Name == "none" {
		b.Failed(errors.New("there is none"))
		return
	}
	b.Sink.Begin(profile.Instant{}, profile.Meta{PID: t.j.PID, Mode: b.Event.Name, Interval: time.Second})
	b.Sink.Sample(&profile.Sample{Stack: &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "byte[]"}}}},
		Count: 1, Bytes: 1000, Event: &profile.EventKind{Name: b.Event.Name, Unit: profile.Bytes}})
	control := &fakeBeside{w: t.w}
	t.w.mu.Lock()
	if t.j.beside == nil {
		t.j.beside = map[string]*fakeBeside{}
	}
	t.j.beside[b.Event.Name] = control
	t.w.mu.Unlock()
	control.begin = func() {
		b.Begin()
		b.Started(control)
	}
	b.Started(control)
}

func (f *fakeBeside) Govern(_ time.Duration, share float64) bool {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.share = share
	return true
}

func (f *fakeBeside) Latest() sampler.Stats {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.st
}

func (f *fakeBeside) Drop() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.dropped = true
}

func (f *fakeBeside) Again() {
	f.w.mu.Lock()
	f.dropped, f.st = false, sampler.Stats{}
	f.resumes++
	f.w.mu.Unlock()
	f.begin()
}
