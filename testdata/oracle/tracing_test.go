//go:build linux

package oracle

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// tracingLibraries compiles the tracing agent for each way of access to thread-local variables.
func tracingLibraries(t *testing.T) (paths []string) {
	t.Helper()
	for _, of := range []struct{ class, option string }{
		{"Gnu", "-mtls-dialect=" + tlsDialects[0]},
		{"Descriptor", "-mtls-dialect=" + tlsDialects[1]},
		{"Initial", "-ftls-model=initial-exec"},
		{"Late", "-mtls-dialect=" + tlsDialects[0]},
	} {
		name := "-DNATIVE(name)=Java_truth_Tracing_00024" + of.class + "_##name"
		paths = append(paths, buildNative(t, "tracing.c", "lib"+of.class+".so", "-O2", name, of.option).path)
	}
	return paths
}

// tracingSpans are the spans of truth.Tracing by the methods that work for them; 0 is none.
var tracingSpans = map[string]byte{"alpha": 1, "beta": 2, "detached": 0, "begun": 0, "torn": 0, "astray": 0,
	"waiting": 3, "idle": 0, "inside": 4, "outside": 0}

func startTracing(t *testing.T, jdk jvmtest.JDK, libraries []string, options ...string) *jvmtest.JVM {
	t.Helper()
	options = append(append(options, jniFlags(jdk)...), "-Xms64m", "-Xmx64m", "-XX:CompileCommand=quiet")
	for method := range tracingSpans {
		options = append(options, "-XX:CompileCommand=dontinline,truth.Tracing::"+method)
	}
	return jvmtest.Start(t, jdk, "truth.Tracing", append(append(options, "--"), libraries...)...)
}

// linkJudge compares each sample's span with the method that it was in.
type linkJudge struct {
	sync.Mutex
	t      *testing.T
	known  map[string]int // samples with the right span, by thread
	none   map[string]int // by method
	late   int            // samples of the late library's thread without their span
	wrong  int
	only   []string // the numbers of the threads that are judged
	waits  bool     // a pointer may not be known yet, of a thread that waits when the recording begins
	on     func()
	enough func(*linkJudge) bool
}

func newLinkJudge(t *testing.T, threads string) *linkJudge {
	return &linkJudge{t: t, only: strings.Fields(threads), known: map[string]int{}, none: map[string]int{}}
}

func (j *linkJudge) Begin(profile.Instant, profile.Meta)         {}
func (j *linkJudge) ThreadStart(profile.Instant, profile.Thread) {}
func (j *linkJudge) ThreadEnd(profile.Instant, profile.Thread)   {}
func (j *linkJudge) Tick(profile.Instant, int)                   {}

func (j *linkJudge) Sample(s *profile.Sample) {
	j.Lock()
	defer j.Unlock()
	j.judge(s)
	if j.enough(j) {
		j.on()
	}
}

// judge knows a thread's ids by its name: the thread's number, and 0xee at the trace's end.
func (j *linkJudge) judge(s *profile.Sample) {
	number, ok := strings.CutPrefix(s.Thread.JavaName, "tracing-")
	if s.Thread.Virtual && s.Thread.JavaName == "" { // which one it is could not be read
		number, ok = strconv.Itoa(int(s.Link.Trace[0])), true
	}
	if s.Thread.JavaName == "" && s.Link.Trace[0] == 5 {
		return // the late library's thread has just started, and its name is not known yet
	}
	if !ok || number == "none" {
		if s.Link != (profile.Link{}) {
			j.fail(s, "a thread that publishes nothing has a span")
		}
		return
	}
	if !slices.Contains(j.only, number) {
		return
	}
	var want profile.Link
	want.Trace[15] = 0xee
	fmt.Sscan(number, &want.Trace[0])
	want.Span[0] = want.Trace[0]
	method, inside := tracingMethod(s.Stack)
	want.Span[7] = tracingSpans[method]
	switch {
	case !inside: // on the way from one span to the next
		want.Span = s.Link.Span
		if s.Link.Known() && s.Link != want {
			j.fail(s, "another thread's span")
		}
	case want.Span[7] == 0:
		j.none[method]++
		if s.Link != (profile.Link{}) {
			j.fail(s, "a span in "+method)
		}
	case s.Link == want:
		j.known[number]++
	case j.waits && !s.Link.Known():
		j.late++
	case number == "5" && !s.Link.Known() && j.known[number] == 0:
		j.late++ // goprof has not seen the library yet
	default:
		j.fail(s, "not the span of "+method)
	}
}

func (j *linkJudge) fail(s *profile.Sample, what string) {
	if j.wrong++; j.wrong <= 5 {
		j.t.Errorf("%s: %s: trace %q span %q", s.Thread.JavaName, what, s.Link.TraceID(), s.Link.SpanID())
	}
}

// tracingMethod is from the root on: a waker's frames are on top of those of the thread that waited.
func tracingMethod(stack *profile.Stack) (name string, ok bool) {
	for _, f := range slices.Backward(stack.Frames) {
		if name, ok := strings.CutPrefix(f.Func.Name, "truth.Tracing."); ok {
			if _, ok := tracingSpans[name]; ok {
				return name, true
			}
		}
	}
	return "", false
}

// TestTraceContext: each sample has the span that its thread published while it was in the method on its stack, and
// never another. The threads go from span to span many times in each interval, by libraries of each way of access to
// thread-local variables, one of which is loaded while goprof records.
func TestTraceContext(t *testing.T) {
	t.Parallel()
	samples := 50
	if os.Getenv("GOPROF_PROVE") != "" {
		samples = 5_000
	}
	libraries := tracingLibraries(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := startTracing(t, jdk, libraries)
		s := attach(t, jvm.PID)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		judge := newLinkJudge(t, "1 2 3 4 5")
		loaded := false
		judge.enough = func(j *linkJudge) bool {
			if !loaded && j.known["1"] > 0 {
				loaded = true
				go jvm.Command("late")
			}
			enough := len(j.known) == 5 && len(j.none) == 4
			for _, n := range j.known {
				enough = enough && n >= samples
			}
			return enough || j.wrong > 0
		}
		judge.on = cancel
		p, sum, err := s.Record(ctx, session.RecordOptions{Interval: time.Millisecond, Depth: 2048, Sink: judge})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("right: %v, none: %v, before the late library was seen: %d; %v", judge.known, judge.none, judge.late,
			sum.Links)
		if len(judge.known) != 5 || len(judge.none) != 4 {
			t.Errorf("some threads or methods were never seen")
		}
		l := sum.Links
		if l == nil || l.Invalid == 0 || l.Half == 0 || l.Unreadable == 0 || l.None == 0 {
			t.Fatalf("account of spans: %+v", l)
		}
		if n := l.Read + l.None + l.Invalid + l.Half + l.Unreadable + l.NotStopped; n != p.Counts.Samples() {
			t.Errorf("the account has %d samples of %d", n, p.Counts.Samples())
		}
		t.Run("waiting", func(t *testing.T) { waitingLinks(t, s) })
		t.Run("wall", func(t *testing.T) { wallLinks(t, s) })
		t.Run("kernel", func(t *testing.T) { kernelLinks(t, s) })
	})
}

// kernelLinks: samples that the kernel takes have the span, too, of each sort.
func kernelLinks(t *testing.T, s *session.Session) {
	host.NeedPerf(t)
	waits := session.RecordOptions{Mode: session.WaitingMode, Interval: 5 * time.Millisecond, Engine: session.PerfEngine}
	locks, wakers := waits, waits
	locks.States = func(state profile.State) bool { return state == profile.Blocked }
	wakers.Wakers = true
	for name, c := range map[string]linkRow{
		"cpu":               {perfOptions, "1 2 3 4 5", "detached"},
		"off-cpu":           {waits, "6 7", "idle"},
		"off-cpu, runnable": {waits, "1 2 3 4 5", "detached"},
		"lock":              {locks, "8 9", "outside"},
		"wakers":            {wakers, "8 9", "outside"},
		"context-switches":  eventLinks(t, s, "context-switches", "8 9"),
	} {
		t.Run(name, func(t *testing.T) { c.record(t, s) })
	}
	allEventLinks(t, s, "8 9")
}

var perfOptions = session.RecordOptions{Interval: time.Millisecond, Engine: session.PerfEngine}

// linkRow is a recording, the threads of the program that it is about, and a method in which they have no span.
type linkRow struct {
	opt     session.RecordOptions
	threads string
	without string
}

func eventLinks(t *testing.T, s *session.Session, event, threads string) linkRow {
	opt := session.RecordOptions{Engine: session.PerfEngine, Event: findEvent(t, s, event, 1)}
	return linkRow{opt, threads, "outside"}
}

func allEventLinks(t *testing.T, s *session.Session, threads string) {
	for _, name := range []string{profile.EventAlloc, profile.EventExceptions, profile.EventIO, "malloc", "libc:read"} {
		t.Run(name, func(t *testing.T) { eventLinks(t, s, name, threads).record(t, s) })
	}
}

func (c linkRow) record(t *testing.T, s *session.Session) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	judge := newLinkJudge(t, c.threads)
	judge.on, judge.waits = cancel, c.opt.Mode == session.WaitingMode
	judge.enough = func(j *linkJudge) bool {
		enough := j.none[c.without] >= 10 || j.wrong > 0
		for _, thread := range j.only {
			enough = enough && j.known[thread] >= 10
		}
		return enough
	}
	c.opt.Sink, c.opt.Depth = judge, 2048
	_, sum, err := s.Record(ctx, c.opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("right: %v, none: %v, not known: %d; %v", judge.known, judge.none, judge.late, sum.Links)
	if !judge.enough(judge) {
		t.Error("too few samples")
	}
}

// TestTraceContextVirtual: the same of virtual threads, whose record is their carrier's. The session has stopped
// threads before the kernel takes samples.
func TestTraceContextVirtual(t *testing.T) {
	t.Parallel()
	host.NeedPerf(t)
	libraries := tracingLibraries(t)[:3]
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 21 {
			return // it has no virtual threads
		}
		s := attach(t, startTracing(t, jdk, libraries, "-Djdk.virtualThreadScheduler.parallelism=3").PID)
		stops := perfOptions
		stops.Engine = session.PtraceEngine
		for _, c := range []linkRow{{stops, "1 2 3", "detached"}, {perfOptions, "1 2 3", "detached"}} {
			t.Run(string(c.opt.Engine), func(t *testing.T) { c.record(t, s) })
		}
		allEventLinks(t, s, "1 2 3")
	})
}

// waitingLinks: a thread that waits is not stopped, and its looks have the span in which it waits.
func waitingLinks(t *testing.T, s *session.Session) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	judge := newLinkJudge(t, "6 7")
	judge.on, judge.waits = cancel, true
	judge.enough = func(j *linkJudge) bool {
		return j.known["6"] >= 50 && j.known["7"] >= 50 && j.none["idle"] >= 50 || j.wrong > 0
	}
	_, sum, err := s.Record(ctx, session.RecordOptions{Mode: session.WallMode, Interval: 5 * time.Millisecond,
		Engine: session.PtraceEngine, Sink: judge})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("right: %v, none: %v; %v", judge.known, judge.none, sum.Links)
	if judge.known["6"] < 50 || judge.known["7"] < 50 || judge.none["idle"] < 50 || judge.late > judge.known["6"]/5 {
		t.Errorf("too few looks at threads that wait, or %d without their span", judge.late)
	}
}

// wallLinks: a recording of wall-clock time accounts for each of its looks, also where no file keeps single ones. Where
// one does, both have the same looks with a span.
func wallLinks(t *testing.T, s *session.Session) {
	for _, sink := range []*linkCounter{nil, {}} {
		// Where CPUs are short a second may bring no look at a thread with a span.
		for length := time.Second; !wallLinksIn(t, s, sink, length); length *= 2 {
			if length > jvmtest.Slow(30*time.Second) {
				t.Fatal("no looks with a span, or none without a stop")
			}
		}
	}
}

// wallLinksIn is one recording. It returns false where there were not looks of both sorts.
func wallLinksIn(t *testing.T, s *session.Session, sink *linkCounter, length time.Duration) bool {
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	opt := session.RecordOptions{Mode: session.WallMode, Interval: 10 * time.Millisecond, Engine: session.PtraceEngine}
	if sink != nil {
		*sink = linkCounter{}
		opt.Sink = sink
	}
	p, sum, err := s.Record(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d looks: %v", p.Counts.Samples(), sum.Links)
	l := sum.Links
	if l == nil {
		t.Fatal("there is no account of spans")
	}
	if n := l.Read + l.None + l.Invalid + l.Half + l.Unreadable + l.NotStopped; n != p.Counts.Samples() {
		t.Errorf("the account has %d looks of %d", n, p.Counts.Samples())
	}
	// A look that was not told when it was made is told with a later one, which may have another span.
	if sink != nil && max(sink.known-l.Read, l.Read-sink.known) > 5+l.Read/50 {
		t.Errorf("%d looks with a span were told, and the account has %d", sink.known, l.Read)
	}
	return l.Read > 0 && l.NotStopped > 0
}

// linkCounter counts looks with a span.
type linkCounter struct{ known int64 }

func (c *linkCounter) Begin(profile.Instant, profile.Meta)         {}
func (c *linkCounter) ThreadStart(profile.Instant, profile.Thread) {}
func (c *linkCounter) ThreadEnd(profile.Instant, profile.Thread)   {}
func (c *linkCounter) Tick(profile.Instant, int)                   {}

func (c *linkCounter) Sample(s *profile.Sample) {
	if s.Link.Known() {
		c.known += s.Looks()
	}
}
