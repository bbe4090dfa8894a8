//go:build linux

package topscreen

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/product"
	"goprof/output/format"
	"goprof/output/top"
	"goprof/profile"
	"goprof/profile/naming"
	"goprof/session"
)

// samples takes the samples of top into a window. When the user begins to record, another recording begins at record's
// rate. Its samples go into a file and into the window.
type samples struct {
	session *session.Session
	o       Options
	pid     int
	began   time.Time

	mu     sync.Mutex
	window *top.Window
	frames map[int]seenFrame
	pauses profile.Pauses // of the ended segments
	file   *fileRecording // the recording that runs, or is to begin
	next   context.CancelFunc
	told   []string // messages about ended recordings

	recordings int // number of recordings begun

	visits chan session.Visit
	ended  chan struct{}
	err    error // set when the sampling has ended
}

// seenFrame holds two Java methods of a thread at its last sample: the running one, and the one that waiting time
// counts for.
type seenFrame struct {
	running, waiting string
	at               time.Time
}

// of returns the method of a thread for its present state.
func (f *seenFrame) of(state string) string {
	if state == profile.Running.String() {
		return f.running
	}
	return f.waiting
}

// fileRecording is a recording that the user has begun.
type fileRecording struct {
	out  *product.Outputs
	name string
	over bool // the user has ended it
}

func newSamples(s *session.Session, o Options, pid int) *samples {
	return &samples{session: s, o: o, pid: pid, began: time.Now(), window: top.NewWindow(o.Window),
		frames: map[int]seenFrame{}, visits: make(chan session.Visit), ended: make(chan struct{})}
}

// run samples until ctx is done or the process ends.
func (t *samples) run(ctx context.Context, length time.Duration) {
	defer close(t.ended)
	defer t.giveUp()
	for first := true; ctx.Err() == nil && t.session.Process.Alive() == nil && (first || length == 0); first = false {
		if t.err = t.segment(ctx, length); t.err != nil {
			return
		}
	}
}

// segment samples until a recording begins or ends.
func (t *samples) segment(ctx context.Context, length time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	opt := session.RecordOptions{Duration: length, HideInternal: true, Visits: t.visits, Sink: t,
		Interval: time.Duration(float64(time.Second) / t.o.Rate)}
	file := t.begin(stop)
	if file != nil {
		opt.Interval, opt.HideInternal = fileInterval, false
		defer context.AfterFunc(ctx, file.out.EndSoon)()
		if sink := file.out.Start(t.session.Facts(), stop); sink != nil {
			opt.Sink = twoSinks{t, sink}
		}
	}
	p, sum, err := t.session.Record(ctx, opt)
	t.mu.Lock()
	t.pauses = addPauses(t.pauses, sum.Pauses)
	t.next = nil
	if file != nil {
		t.file = nil
	}
	t.mu.Unlock()
	if file != nil {
		t.finish(file, p, &sum)
	}
	return err
}

// begin returns the recording of the next segment, or nil. A recording that the user has already ended gets a segment
// that ends at once.
func (t *samples) begin(stop context.CancelFunc) *fileRecording {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = stop
	if t.file != nil && t.file.over {
		stop()
	}
	return t.file
}

// giveUp ends a recording that gets no more segments.
func (t *samples) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return
	}
	say := nothingRecorded
	if err := t.file.out.LeaveOut(nil); err != nil {
		say = exit.CannotWrite(err).Error()
	}
	t.file, t.told = nil, append(t.told, say)
}

const nothingRecorded = "no samples: nothing was recorded"

// finish writes the recording, and notes a message for the user.
func (t *samples) finish(file *fileRecording, p *profile.Profile, sum *profile.Summary) {
	sum.Meta.Version, p.Meta.Version = t.o.Version, t.o.Version
	now := &product.Recorded{Profile: p, Summary: sum, At: t.session.Now()}
	say := ""
	if sum.Samples == 0 {
		say = nothingRecorded
		if err := file.out.LeaveOut(nil); err != nil {
			say = exit.CannotWrite(err).Error()
		}
	} else if name, err := file.out.Finish(now); err != nil {
		say = exit.CannotWrite(err).Error()
	} else {
		say = "recorded " + name
	}
	t.mu.Lock()
	t.told = append(t.told, say)
	t.mu.Unlock()
}

// fileInterval is the CPU time between two samples of a recording: record's own.
const fileInterval = 10 * time.Millisecond

// record begins a recording and returns its file's name, or ends the running recording and returns "".
func (t *samples) record() (name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		t.file.over = true
		t.endSegment()
		return "", nil
	}
	f := product.Files{Output: numbered(cmp.Or(t.o.Output, "top-%p-%t.jfr"), t.recordings+1),
		Options: product.Options{Version: t.o.Version, Tell: func(string) {}}}
	if f.As, err = format.Of(f.Output, ""); err != nil {
		return "", err
	}
	out, err := f.Reserve(t.pid)
	if err != nil {
		return "", exit.CannotWrite(err)
	}
	t.recordings++
	t.file = &fileRecording{out: out, name: out.File().Name()}
	t.endSegment()
	return t.file.name, nil
}

// numbered returns the name of the nth recording of one screen: out.jfr, out-2.jfr. So no recording replaces another. A
// name with the time in it (%t) needs no number.
func numbered(name string, n int) string {
	if n < 2 || strings.Contains(name, "%t") {
		return name
	}
	end := filepath.Ext(name)
	if end == ".gz" { // pb.gz
		end = filepath.Ext(strings.TrimSuffix(name, end)) + end
	}
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, end), n, end)
}

// recording returns the name of the running recording's file.
func (t *samples) recording() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil || t.file.over {
		return ""
	}
	return t.file.name
}

// takeTold returns the messages since its last call.
func (t *samples) takeTold() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := t.told
	t.told = nil
	return told
}

func (t *samples) endSegment() {
	if t.next != nil {
		t.next()
	}
}

// visitTime limits how long a reading waits for the pauses. A walk may be running, and nothing answers between two
// segments.
const visitTime = 200 * time.Millisecond

// allPauses returns the pauses so far. ok is false if the sampler does not answer in time.
func (t *samples) allPauses() (p profile.Pauses, ok bool) {
	answer := make(chan profile.Pauses, 1)
	select {
	case t.visits <- func(_ *profile.Profile, s *profile.Summary) { answer <- s.Pauses }:
	case <-t.ended:
		return t.pauses, true
	case <-time.After(visitTime):
		return p, false
	}
	select {
	case p = <-answer:
	case <-time.After(visitTime):
		return p, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return addPauses(t.pauses, p), true
}

// addPauses adds the pauses of two segments. The common p99 lies between the two values, so the larger one is returned.
func addPauses(a, b profile.Pauses) profile.Pauses {
	a.Count += b.Count
	a.Total += b.Total
	a.P50, a.P99, a.Max = max(a.P50, b.P50), max(a.P99, b.P99), max(a.Max, b.Max)
	return a
}

// frame returns the last sampled frame of a thread.
func (t *samples) frame(tid int) (f seenFrame, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, ok = t.frames[tid]
	return f, ok
}

// methods returns the methods of the window.
func (t *samples) methods() ([]top.Method, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.window.Methods(time.Since(t.began))
}

func (t *samples) Begin(profile.Instant, profile.Meta) {}

// Sample adds a sample to the window.
func (t *samples) Sample(s *profile.Sample) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.window.Add(time.Since(t.began), s.Stack, s.Looks())
	t.frames[s.Thread.TID] = seenFrame{naming.TopJava(s.Stack, false), naming.TopJava(s.Stack, true), time.Now()}
}

func (t *samples) ThreadStart(profile.Instant, profile.Thread) {}

// ThreadEnd removes the thread's last frame.
func (t *samples) ThreadEnd(_ profile.Instant, th profile.Thread) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.frames, th.TID)
}

func (t *samples) Tick(profile.Instant, int) {}

// twoSinks passes everything to two Sinks.
type twoSinks [2]session.Sink

func (t twoSinks) Begin(at profile.Instant, m profile.Meta) { t[0].Begin(at, m); t[1].Begin(at, m) }

func (t twoSinks) Sample(s *profile.Sample) { t[0].Sample(s); t[1].Sample(s) }

func (t twoSinks) ThreadStart(at profile.Instant, th profile.Thread) {
	t[0].ThreadStart(at, th)
	t[1].ThreadStart(at, th)
}

func (t twoSinks) ThreadEnd(at profile.Instant, th profile.Thread) {
	t[0].ThreadEnd(at, th)
	t[1].ThreadEnd(at, th)
}

// Allocated is passed to Sinks that implement session.AllocationSink.
func (t twoSinks) Allocated(at profile.Instant, th profile.Thread, bytes uint64) {
	for _, sink := range t {
		if s, ok := sink.(session.AllocationSink); ok {
			s.Allocated(at, th, bytes)
		}
	}
}

func (t twoSinks) Tick(at profile.Instant, n int) { t[0].Tick(at, n); t[1].Tick(at, n) }
