//go:build linux

package session

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// told keeps what a Sink gets.
type told struct {
	samples []profile.Sample
	frames  []string
	looks   map[profile.State]int64
	span    time.Duration
	started int
	threads []string // the started threads: times and names
}

func (s *told) Begin(profile.Instant, profile.Meta)       {}
func (s *told) ThreadEnd(profile.Instant, profile.Thread) {}
func (s *told) Tick(at profile.Instant, javaThreads int)  {}
func (s *told) ThreadStart(at profile.Instant, t profile.Thread) {
	s.started++
	if t.JavaName != "" {
		t.Name = t.JavaName
	}
	s.threads = append(s.threads, fmt.Sprintf("at %dh: %s", time.Duration(at.Ticks)/time.Hour, t.Name))
}
func (s *told) Sample(sample *profile.Sample) {
	s.samples = append(s.samples, *sample)
	s.looks[sample.State] += sample.Looks()
	s.span += sample.Span
	text := ""
	for i := range sample.Stack.Frames {
		text += sample.Stack.Frames[i].Func.Name + " "
	}
	s.frames = append(s.frames, strings.TrimSpace(text))
}

// wallRecording is a recording. The test itself makes its looks.
func wallRecording(sink Sink, o RecordOptions) *wall {
	o.Mode, o.Interval, o.Sink = WallMode, 50*time.Millisecond, sink
	r := &recording{Session: &Session{}, opt: o, habits: habitsOf(o.Lean), profile: profile.New(), sampled: map[int]bool{},
		timed: &telling{sink: sink}}
	w := newWall(r)
	r.manner = w
	return w
}

// newStanding begins a look at a parked thread, and gives it a stack.
func (s *wall) newStanding(tid int, when int64) *standing {
	st := &standing{tid: tid, tally: new(look.Tally), state: profile.Parked}
	s.leafed.Frames = []profile.Frame{
		{Func: s.frame(profile.Parked, ""), Kind: profile.StateFrame, BCI: -1},
		{Func: &profile.Func{Name: "park"}, Line: 7, BCI: 3}, {Func: &profile.Func{Name: "run"}},
	}
	s.leafed.Truncated = profile.Whole
	st.at = s.profile.AddAt("[t tid=1]", &s.leafed, 0, 0)
	s.timed.sample = profile.Sample{}
	st.told = toldLook{thread: profile.Thread{TID: tid}, rooted: true, began: when}
	s.keepFrames(st)
	return st
}

// TestLooksAreTold: each look is handed over once, with the time of the first look of its sample. The sum is that of
// the profile. This also holds if the kernel reports late that the thread was ready to run.
func TestLooksAreTold(t *testing.T) {
	sink := &told{looks: map[profile.State]int64{}}
	r := wallRecording(sink, RecordOptions{})
	const began, every = 1_000_000_000, 50_000_000
	st := r.newStanding(1, began)
	st.tally.Add(1, every, began)
	r.keepLook(st)
	for i := range int64(20) {
		st.tally.Add(1, every, began+(i+1)*every)
	}
	r.settle(st)
	r.settle(st) // nothing is new
	st.tally.Ready(5, 5*every)
	st.tally.Add(1, every, began+21*every)
	r.settle(st)
	if n := len(sink.samples); n != 3 {
		t.Fatalf("%d samples", n)
	}
	if got := r.profile.Counts.Samples(); got != 22 || sink.looks[profile.Parked]+sink.looks[profile.Runnable] != got {
		t.Errorf("%d looks in the profile, told %v", got, sink.looks)
	}
	if sink.span != r.profile.Time {
		t.Errorf("%v in the profile, %v told", r.profile.Time, sink.span)
	}
	for i, want := range []int64{began, began + every, began + 21*every} {
		if s := &sink.samples[i]; s.At.Ticks != want || !s.Wall {
			t.Errorf("sample %d is at %d, want %d", i, s.At.Ticks, want)
		}
	}
	if sink.frames[0] != "[parked] park run" || sink.frames[2] != "[runnable] park run" {
		t.Errorf("%q", sink.frames)
	}
}

// TestStatesThatAreTold: a Sink only gets looks in wanted states.
func TestStatesThatAreTold(t *testing.T) {
	sink := &told{looks: map[profile.State]int64{}}
	r := wallRecording(sink, RecordOptions{States: func(s profile.State) bool { return s == profile.Runnable }})
	st := r.newStanding(1, 1)
	st.tally.Add(10, 10, 10)
	st.tally.Ready(4, 4)
	r.keepLook(st)
	if sink.looks[profile.Runnable] != 4 || len(sink.looks) != 1 || r.profile.Counts.Samples() != 4 {
		t.Errorf("told %v, %d in the profile", sink.looks, r.profile.Counts.Samples())
	}
}

// TestLooksThatAreToldTooMuch: the kernel reports late that a thread was ready to run, and such looks are not wanted.
// So fewer of the thread's next looks are handed over, even if they have another stack.
func TestLooksThatAreToldTooMuch(t *testing.T) {
	sink := &told{looks: map[profile.State]int64{}}
	r := wallRecording(sink, RecordOptions{States: func(s profile.State) bool { return s == profile.Parked }})
	st := r.newStanding(1, 1)
	st.tally.Add(20, 200, 10)
	r.keepLook(st)
	st.tally.Ready(5, 50)
	r.settle(st)
	next := r.newStanding(1, 100)
	next.tally.Add(8, 80, 200)
	r.keepLook(next)
	got, want := sink.looks[profile.Parked], r.profile.Counts.Samples()
	if got != want || want != 23 || len(sink.looks) != 1 || sink.span != r.profile.Time {
		t.Errorf("told %v of %v, %d in the profile of %v", sink.looks, sink.span, want, r.profile.Time)
	}
}

// TestKeptFramesAreBounded: if there is no room for a look's frames, they come from the profile, without line numbers.
func TestKeptFramesAreBounded(t *testing.T) {
	sink := &told{looks: map[profile.State]int64{}}
	r := wallRecording(sink, RecordOptions{})
	r.timed.frames = maxKeptFrames - 2
	st := r.newStanding(1, 1)
	st.tally.Add(1, 1, 1)
	r.keepLook(st)
	if st.told.frames != nil || sink.frames[0] != "[parked] park run" || r.timed.frames != maxKeptFrames-2 {
		t.Errorf("%d frames kept, %q", r.timed.frames, sink.frames)
	}
	r.timed.frames = 0
	other := r.newStanding(2, 1)
	if other.told.frames == nil || r.timed.frames != 3 {
		t.Errorf("%d frames kept", r.timed.frames)
	}
	if r.forgetLook(other); r.timed.frames != 0 {
		t.Errorf("%d frames kept", r.timed.frames)
	}
}

// TestStartsWaitForNames: a new thread has its maker's name until the JVM gives it its own. Its start is reported with
// its own name, if that is known by the next tick or by its end. The reported time is when the thread was first seen.
func TestStartsWaitForNames(t *testing.T) {
	p, err := process.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sink := &told{}
	r := wallRecording(sink, RecordOptions{})
	r.dir = newDirectory(p, nil)
	r.timed.named = maxNewNames // no names are read
	var all []*listedThread
	for i, name := range []string{"own", "", "", ""} {
		th := &listedThread{kernel: process.Thread{TID: 1<<30 + i, Comm: "mother"}, name: name, javaNamed: name != ""}
		r.timed.clock.ticks = int64(i)*int64(time.Hour) - now()
		r.tellThread(th, false)
		all = append(all, th)
	}
	check := func(want ...string) {
		t.Helper()
		slices.Sort(sink.threads)
		if d := cmp.Diff(want, sink.threads); d != "" {
			t.Error(d)
		}
	}
	check("at 0h: own")
	all[1].name, all[1].javaNamed = "short", true
	r.tellThread(all[1], true)
	check("at 0h: own", "at 1h: short")
	all[2].name, all[2].javaNamed = "late", true
	r.tellStarts()
	r.tellStarts()
	check("at 0h: own", "at 1h: short", "at 2h: late", "at 3h: mother")
}

// TestTimeNamespace: a process in a time namespace has a different System.nanoTime.
func TestTimeNamespace(t *testing.T) {
	jvmtest.NotQuick(t, jvmtest.NeedsNamespace)
	if got := timeOffset(os.Getpid()); got != 0 {
		t.Errorf("our own clock is %v ahead of itself", got)
	}
	cmd := exec.Command("unshare", "--time", "--monotonic", "3600", "--fork", "sh", "-c", "echo $$; exec sleep 60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Skipf("no time namespaces here: %v", err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := 0
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Skipf("no time namespaces here: %v", err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	if got := timeOffset(pid); got != time.Hour {
		t.Errorf("its clock is %v ahead, want an hour", got)
	}
}

// TestWallClockIsSet: the wall clock is set by an hour during a recording. Samples have the new time from the next
// second on, and the ticks of the JVM's own clock continue as before.
func TestWallClockIsSet(t *testing.T) {
	r := wallRecording(&told{looks: map[profile.State]int64{}}, RecordOptions{})
	r.dir = newDirectory(nil, nil)
	r.timed.clock = clock{ticks: int64(time.Hour)}
	r.timed.clock.refresh()
	r.timed.clock.wall -= int64(time.Hour) // as before the clock was set
	r.tick()
	at := r.timed.clock.at(now())
	if late := time.Since(time.Unix(0, at.Wall)); late.Abs() > time.Minute || at.Ticks-now() > int64(time.Hour) {
		t.Errorf("the wall clock is %v off, ticks are %v ahead", late, time.Duration(at.Ticks-now()))
	}
}

func TestCPUInfo(t *testing.T) {
	const x86 = "processor\t: 0\nmodel name\t: A CPU @ 2.50GHz\nphysical id\t: 0\ncore id\t\t: 0\n\n" +
		"processor\t: 1\nmodel name\t: A CPU @ 2.50GHz\nphysical id\t: 0\ncore id\t\t: 0\n\n" +
		"processor\t: 2\nmodel name\t: A CPU @ 2.50GHz\nphysical id\t: 1\ncore id\t\t: 0\n"
	name, sockets, cores, threads := cpuInfo([]byte(x86))
	if name != "A CPU @ 2.50GHz" || sockets != 2 || cores != 2 || threads != 3 {
		t.Errorf("%q %d %d %d", name, sockets, cores, threads)
	}
	name, sockets, cores, threads = cpuInfo([]byte("processor\t: 0\nBogoMIPS\t: 50\n"))
	if name != "" || sockets != 1 || cores != 1 || threads != 1 {
		t.Errorf("%q %d %d %d", name, sockets, cores, threads)
	}
	if _, sockets, cores, threads := cpuInfo(nil); sockets != 0 || cores != 0 || threads != 0 {
		t.Errorf("%d %d %d", sockets, cores, threads)
	}
}

// nobody is a Sink that ignores its samples.
type nobody struct{ told }

func (nobody) Sample(*profile.Sample) {}

// BenchmarkTellSample measures what a sample costs before it is formatted: reading its clocks, and finding its thread.
func BenchmarkTellSample(b *testing.B) {
	r := wallRecording(&nobody{}, RecordOptions{})
	r.dir = newDirectory(nil, nil)
	r.dir.threads[7] = &listedThread{kernel: process.Thread{TID: 7, Comm: "worker"}, name: "worker", javaNamed: true}
	snap := &look.Look{Snapshot: process.Snapshot{TID: 7}, When: 1, CPU: 1, Count: 1}
	stack := &profile.Stack{Frames: make([]profile.Frame, 60)}
	b.ReportAllocs()
	for b.Loop() {
		r.tellSample(snap, stack, profile.Link{})
	}
}

// TestTakenCPUIsNoWaitForALock: if a thread's CPU was taken from it, the kernel reports its state. If such looks are
// not wanted, no walk is needed. So none can be lost because a walk failed.
func TestTakenCPUIsNoWaitForALock(t *testing.T) {
	parked := func(s profile.State) bool { return s == profile.Parked }
	r := wallRecording(nil, RecordOptions{States: parked})
	r.waits, r.switches, r.timed = true, true, nil
	snap := &look.Look{Tally: new(look.Tally)}
	snap.Tally.Add(3, time.Millisecond, 7)
	snap.Waiting = look.Waiting{State: 'R', NoCPU: true}
	if r.wanted(snap) {
		t.Error("it is walked")
	}
	if sum := r.profile.Summary(); sum.Attempted != 0 || r.others != 3 || len(r.of) != 0 {
		t.Errorf("%d attempted, %d left out, %d standing", sum.Attempted, r.others, len(r.of))
	}
}
