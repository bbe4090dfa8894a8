//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"goprof/output/ship"
	"goprof/profile"
	"goprof/profile/resource"
	"goprof/sampler"
	"goprof/sampler/diagnose"
	"goprof/sampler/session"
)

// fakeWorld is a host of made-up JVMs.
type fakeWorld struct {
	mu       sync.Mutex
	jvms     map[int]*fakeJVM
	own      time.Duration
	interval time.Duration
	attached map[int]int
	blind    bool
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
	return diagnose.Brief{Started: j.started, Comm: j.comm, Threads: 20, State: state}, true
}

func (w *fakeWorld) Glance(pid int) (diagnose.JVM, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jvms[pid]; j != nil && j.comm == "java" {
		return j.JVM, true
	}
	return diagnose.JVM{}, false
}

func (w *fakeWorld) Place(*JVM) {}

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

func (t *fakeTarget) Tell(j *JVM) { j.Version = "21.0.1" }
func (t *fakeTarget) Close()      {}
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
	how.Started(t)
	select {
	case <-ctx.Done():
	case <-t.j.gone:
	}
	return profile.Summary{}, nil
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

// driven is an agent whose beats the test makes, with a clock of its own.
type driven struct {
	*Agent
	w       *fakeWorld
	now     time.Time
	batches []*ship.Batch
	said    []string
	ctx     context.Context
}

func drive(t *testing.T, s Settings) *driven {
	t.Helper()
	d := &driven{w: newFakeWorld(), now: time.Now()}
	var stop context.CancelFunc
	d.ctx, stop = context.WithCancel(context.Background())
	d.Agent = New(d.w, s, func(b *ship.Batch) { d.batches = append(d.batches, b) },
		func(text string) { d.said = append(d.said, text) })
	d.begin()
	t.Cleanup(func() {
		stop()
		d.end()
	})
	return d
}

// beats lets that many seconds pass.
func (d *driven) beats(n int) {
	for range n {
		d.now = d.now.Add(time.Second)
		d.beat(d.ctx, d.now)
		for wait := 0; d.opening() && wait < 1000; wait++ { // what attaching tells
			select {
			case e := <-d.events:
				d.handle(e)
			case <-time.After(time.Millisecond):
			}
		}
		d.drain()
	}
}

// opening: some recording has not begun yet.
func (d *driven) opening() bool {
	for _, g := range d.guests {
		if g.record != nil && g.record.control == nil {
			return true
		}
	}
	return false
}

func (d *driven) stateOf(pid int) state { return d.guests[pid].state }

// A JVM that does nothing is not attached to; one that uses CPU time is, and is let go when it rests.
func TestOnlyTheBusyAreAttachedTo(t *testing.T) {
	d := drive(t, Default())
	d.w.start(1, "Quiet")
	d.w.start(2, "Busy")
	for range 20 {
		d.w.use(2, 100*time.Millisecond)
		d.w.use(1, 100*time.Microsecond)
		d.beats(1)
	}
	if d.w.attached[1] != 0 || d.stateOf(1) != idle {
		t.Errorf("the quiet one: attached %d times, %v", d.w.attached[1], d.stateOf(1))
	}
	if d.w.attached[2] != 1 || d.stateOf(2) != recorded {
		t.Errorf("the busy one: attached %d times, %v", d.w.attached[2], d.stateOf(2))
	}
	if len(d.batches) == 0 || d.batches[0].Resource.Get(resource.ServiceName) != "Busy" {
		t.Errorf("batches: %v", d.batches)
	}
	d.beats(130)
	if d.stateOf(2) != idle {
		t.Errorf("the busy one rests for two minutes, and is %v", d.stateOf(2))
	}
}

// Where the list of processes cannot be read (no descriptor is left, say), no JVM is taken for gone.
func TestBlindForAMoment(t *testing.T) {
	d := drive(t, Default())
	d.w.start(2, "Busy")
	d.w.use(2, time.Second)
	d.beats(2)
	for _, blind := range []bool{true, false} {
		d.w.mu.Lock()
		d.w.blind = blind
		d.w.mu.Unlock()
		d.beats(3)
		if d.guests[2] == nil || d.stateOf(2) != recorded || d.w.attached[2] != 1 {
			t.Errorf("blind %v: %+v, attached %d times", blind, d.guests[2], d.w.attached[2])
		}
	}
}

// A JVM is attached to soon: its first samples go out within two batches' time.
func TestFirstBatchIsSoon(t *testing.T) {
	d := drive(t, Default())
	d.beats(3)
	d.w.start(7, "New")
	for range int(2*d.settings.Every/time.Second) + 1 {
		d.w.use(7, 300*time.Millisecond)
		d.beats(1)
	}
	if len(d.batches) == 0 {
		t.Error("no batch")
	}
}

// A JVM that is stopped uses no CPU time. It is no idle one: that is said and counted, and it is not let go.
func TestStoppedIsNotIdle(t *testing.T) {
	d := drive(t, Default())
	j := d.w.start(2, "Held")
	for range 5 {
		d.w.use(2, 100*time.Millisecond)
		d.beats(1)
	}
	stop := func(stopped bool) {
		d.w.mu.Lock()
		defer d.w.mu.Unlock()
		j.stopped = stopped
	}
	stop(true)
	d.beats(130)
	if len(d.said) != 1 || !strings.Contains(d.said[0], "process 2 (Held) is stopped") || d.stateOf(2) != recorded {
		t.Errorf("said %q, and is %v", d.said, d.stateOf(2))
	}
	var page strings.Builder
	d.Metrics().Write(&page)
	if !strings.Contains(page.String(), `goprof_agent_jvms{state="stopped"} 1`) {
		t.Error(page.String())
	}
	stop(false)
	d.w.use(2, 100*time.Millisecond)
	d.beats(2)
	if len(d.said) != 2 || !strings.Contains(d.said[1], "goes on") {
		t.Errorf("said %q", d.said)
	}
}

// A JVM that was attached to while it started is tried again.
func TestStartingIsTriedAgain(t *testing.T) {
	d := drive(t, Default())
	j := d.w.start(3, "Slow")
	j.fails = errStarts
	for n := range 60 {
		if n == 5 {
			d.w.mu.Lock()
			j.fails = nil
			d.w.mu.Unlock()
		}
		d.w.use(3, time.Second)
		d.beats(1)
	}
	if d.stateOf(3) != recorded {
		t.Errorf("attached %d times, and is %v", d.w.attached[3], d.stateOf(3))
	}
}

// What is denied is left alone, also where it could not be recorded anyway.
func TestDeniedAreNotComplainedOf(t *testing.T) {
	s := Default()
	s.Choice.Deny = rules(t, "Odd")
	d := drive(t, s)
	d.w.start(3, "Odd").Problem = &diagnose.Cause{Name: "openj9"}
	for range 60 {
		d.w.use(3, time.Second)
		d.beats(1)
	}
	if d.stateOf(3) != denied || len(d.said) != 0 || d.w.attached[3] != 0 {
		t.Errorf("%v, said %q, attached %d times", d.stateOf(3), d.said, d.w.attached[3])
	}
}

// What cannot be recorded is said once, and counted.
func TestUnsupportedIsSaidOnce(t *testing.T) {
	d := drive(t, Default())
	d.w.start(3, "Odd").fails = errors.New("no tables")
	for range 60 {
		d.w.use(3, time.Second)
		d.beats(1)
	}
	if d.w.attached[3] != 1 || len(d.said) != 1 || !strings.Contains(d.said[0], "process 3 (Odd)") {
		t.Errorf("attached %d times, said %q", d.w.attached[3], d.said)
	}
	var page strings.Builder
	d.Metrics().Write(&page)
	if !strings.Contains(page.String(), `goprof_agent_refused_total{cause="unsupported"} 1`) {
		t.Error(page.String())
	}
}

// JVMs that end, whose number passes to another, or that become another program.
func TestJVMsEnd(t *testing.T) {
	d := drive(t, Default())
	d.w.start(4, "Short")
	d.w.use(4, time.Second)
	d.beats(2)
	d.w.stop(4)
	d.handle(<-d.events) // the recording may know it before the finder
	d.beats(2)
	for wait := 0; len(d.batches) == 0 && wait < 1000; wait++ {
		d.beats(1)
		time.Sleep(time.Millisecond)
	}
	if len(d.guests) != 0 || d.Metrics().Counts().Ended != 1 || len(d.batches) != 1 {
		t.Errorf("%d guests, %+v, %d batches", len(d.guests), d.Metrics().Counts(), len(d.batches))
	}
	if m := d.Metrics(); m.endedRecorded.Load() != 1 || m.execs.Load() != 0 {
		t.Errorf("%d ended while they were recorded, %d became another program", m.endedRecorded.Load(), m.execs.Load())
	}
	d.w.start(4, "Other").started = time.Hour // the same number
	d.w.use(4, time.Second)
	d.beats(2)
	if g := d.guests[4]; g == nil || g.Main != "Other" {
		t.Errorf("%+v", g)
	}
	d.w.mu.Lock()
	d.w.jvms[4].comm = "sh" // exec
	d.w.mu.Unlock()
	d.beats(3)
	if d.guests[4] != nil {
		t.Error("a shell is a JVM")
	}
}

func rules(t *testing.T, texts ...string) (all []Rule) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestChoice(t *testing.T) {
	j := &JVM{JVM: diagnose.JVM{Main: "com.acme.Shop", User: "app", Version: "17.0.1", Container: "0123456789ab"},
		Cgroup: "/kubepods/burstable/pod1/x", Namespace: "prod"}
	for _, c := range []struct {
		name         string
		match, deny  []string
		outside, now Verdict
	}{
		{"all", nil, nil, Wanted, Wanted},
		{"name", []string{"Shop"}, nil, Wanted, Wanted},
		{"other name", []string{"Bank"}, nil, Unwanted, Unwanted},
		{"one of two", []string{"Bank", "user=^app$"}, nil, Wanted, Wanted},
		{"denied", []string{"Shop"}, []string{"namespace=prod"}, Unwanted, Unwanted},
		{"version asked for", []string{"version=^17"}, nil, Unsure, Wanted},
		{"version denied", nil, []string{"version=^1[.]8"}, Unsure, Wanted},
		{"version that is denied", nil, []string{"version=^17"}, Unsure, Unwanted},
		{"cgroup", []string{"cgroup=burstable"}, []string{"container=^ff"}, Wanted, Wanted},
		{"a name with =", []string{"name=a=b"}, nil, Unwanted, Unwanted},
	} {
		choice := Choice{rules(t, c.match...), rules(t, c.deny...)}
		if got := choice.Judge(j, false); got != c.outside {
			t.Errorf("%s: from outside %v", c.name, got)
		}
		if got := choice.Judge(j, true); got != c.now {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	for _, wrong := range []string{"(", "usr=app", "Vendor=x", "name=("} {
		if _, err := ParseRule(wrong); err == nil {
			t.Errorf("%s is a rule", wrong)
		}
	}
}

// The configuration may change while JVMs are recorded.
func TestReload(t *testing.T) {
	d := drive(t, Default())
	d.w.start(5, "Shop")
	d.w.start(6, "Bank")
	work := func(n int) {
		for range n {
			d.w.use(5, 100*time.Millisecond)
			d.w.use(6, 100*time.Millisecond)
			d.beats(1)
		}
	}
	work(4)
	s := Default()
	s.Choice.Deny = rules(t, "Bank")
	d.take(s)
	work(4)
	if d.stateOf(5) != recorded || d.stateOf(6) != denied {
		t.Errorf("%v %v", d.stateOf(5), d.stateOf(6))
	}
	d.take(Default())
	work(4)
	if d.stateOf(6) != recorded {
		t.Errorf("wanted again, and %v", d.stateOf(6))
	}
}

// A reload begins the budget anew: rates that it had lowered are what was asked for, and batches say so.
func TestReloadEndsLowRates(t *testing.T) {
	d := drive(t, Default())
	j := d.w.start(5, "Shop")
	d.w.use(5, time.Second)
	d.beats(2)
	r := d.guests[5].record
	d.budget.slower, d.budget.factor, r.share = 4, 0.5, 0.25
	d.budget.govern(r)
	d.take(Default())
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if j.share != 1 || d.w.interval != d.budget.base || d.budget.intervalOf(r) != d.budget.base {
		t.Errorf("a share of %v of a sample each %v; batches say %v", j.share, d.w.interval, d.budget.intervalOf(r))
	}
}

// Where the kernel takes the samples the budget cannot lower their rate, and batches do not say that it has.
func TestFixedRatesAreToldAsTheyAre(t *testing.T) {
	d := drive(t, Default())
	d.w.start(5, "Perf").fixed = true
	for range 40 {
		d.w.use(5, time.Second)
		d.w.mu.Lock()
		d.w.jvms[5].st.Taken += 19
		d.w.own += 500 * time.Millisecond // of which 20 ms are the budget
		d.w.mu.Unlock()
		d.beats(1)
	}
	if d.budget.slower == 1 {
		t.Error("the budget lowers nothing")
	}
	if got := d.budget.intervalOf(d.guests[5].record); got != d.budget.base {
		t.Errorf("batches say %v, samples are taken each %v", got, d.budget.base)
	}
}

// Batches of many JVMs stay spread over time, also after a reload has cut all of them at once.
func TestBatchesAreSpread(t *testing.T) {
	s := Default()
	s.MaxCPU = 0
	d := drive(t, s)
	const jvms = 30
	for pid := 1; pid <= jvms; pid++ {
		d.w.start(pid, "Shop")
	}
	work := func(beats int) {
		for range beats {
			for pid := 1; pid <= jvms; pid++ {
				d.w.use(pid, 100*time.Millisecond)
			}
			d.beats(1)
		}
	}
	work(60)
	d.take(s)
	due := map[time.Duration]int{}
	for _, g := range d.guests {
		if g.record == nil {
			t.Fatalf("process %d is %v", g.PID, g.state)
		}
		due[d.now.Sub(g.record.cut)]++
	}
	for ago, n := range due {
		if n > jvms/5 {
			t.Errorf("%d of %d were cut %v ago", n, jvms, ago)
		}
	}
}

// Where goprof takes more than it may, it takes less: from the one with most samples first.
func TestBudgetIsHeldFairly(t *testing.T) {
	d := drive(t, Default())
	d.w.start(8, "Small")
	d.w.start(9, "Large")
	for range 90 {
		d.w.use(8, 50*time.Millisecond)
		d.w.use(9, time.Second)
		d.w.mu.Lock()
		// 10 samples a second of one and 190 of the other, of 200 us each: twice the 20 ms that are 1 % of two CPUs.
		for pid, n := range map[int]float64{8: 10, 9: 190} {
			j := d.w.jvms[pid]
			every := max(float64(d.w.interval)/float64(time.Second/19), 1)
			taken := int64(n * j.share / every)
			j.st.Taken += taken
			d.w.own += time.Duration(taken) * 200 * time.Microsecond
		}
		d.w.mu.Unlock()
		d.beats(1)
	}
	small, large := d.guests[8].record, d.guests[9].record
	if small.share < large.share || large.share == 1 && d.budget.slower == 1 {
		t.Errorf("shares %.2f and %.2f, %d times slower", small.share, large.share, d.budget.slower)
	}
	if used := d.Metrics().Counts().Used; used > 0.011 {
		t.Errorf("%.4f of the host", used)
	}
}

func TestFill(t *testing.T) {
	for _, c := range []struct {
		due  []float64
		part float64
		want float64
	}{
		{[]float64{10, 190}, 0.5, 90},
		{[]float64{10, 10}, 0.5, 5},
		{[]float64{1, 2, 3}, 1, 3},
		{nil, 0.5, 0},
	} {
		if got := fill(c.due, c.part); fmt.Sprintf("%.3f", got) != fmt.Sprintf("%.3f", c.want) {
			t.Errorf("%v of %v: %v, want %v", c.part, c.due, got, c.want)
		}
	}
}

// Attaching is paid from half of the budget, and not at once for many.
func TestAttachingIsBounded(t *testing.T) {
	b := budget{max: 0.01, cpus: 2}
	now := time.Now()
	n := 0
	for ; b.mayAttach(now); n++ {
		b.charge(200 * time.Millisecond)
	}
	if n != 3 { // 0.6 s is a minute's half of 1 % of two CPUs
		t.Errorf("%d at once", n)
	}
	if !b.mayAttach(now.Add(time.Second)) {
		t.Error("nothing is paid back")
	}
	b.charge(200 * time.Millisecond)
	if b.mayAttach(now.Add(10*time.Second)) || !b.mayAttach(now.Add(22*time.Second)) {
		t.Error("the debt does not go down by 10 ms a second")
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"rate":   func(s *Settings) { s.Rate = 0 },
		"every":  func(s *Settings) { s.Every = time.Hour },
		"budget": func(s *Settings) { s.MaxCPU = 2 },
		"jvms":   func(s *Settings) { s.MaxJVMs = 0 },
		"engine": func(s *Settings) { s.Engine, s.Mode = session.PerfEngine, session.WallMode },
		"mode":   func(s *Settings) { s.Mode = "night" },
	} {
		s := Default()
		if change(&s); s.Check() == nil {
			t.Errorf("%s is not refused", name)
		}
	}
	s := Default()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
