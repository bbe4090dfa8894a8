//go:build linux

package session

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// The cost of a start is measured in a process that has done nothing else: this test binary, started again with the
// JVM's number in startPID. startAgain is how often it attaches. startProfile is a file for a CPU profile; for that,
// one start is too short:
//
//	GOPROF_START_AGAIN=200 GOPROF_START_PROFILE=/tmp/start.pprof go test ./session -run '^$' -bench Start -benchtime 1x
const (
	startPID     = "GOPROF_START_PID"
	startAgain   = "GOPROF_START_AGAIN"
	startProfile = "GOPROF_START_PROFILE"
)

// start is the output of the started process: CPU milliseconds since its beginning.
type start struct {
	Attached, Warm, First float64 // First: when the first stack is complete
	Top, Truncated        string  // of that stack
}

// TestStartChild is not a test: BenchmarkStart starts it as a process.
func TestStartChild(t *testing.T) {
	pid, err := strconv.Atoi(os.Getenv(startPID))
	if err != nil {
		t.Skip("started by BenchmarkStart")
	}
	if path := os.Getenv(startProfile); path != "" {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			t.Fatal(err)
		}
		defer pprof.StopCPUProfile()
	}
	again, _ := strconv.Atoi(os.Getenv(startAgain))
	for range again {
		startOnce(t, pid)
	}
	told, err := json.Marshal(startOnce(t, pid))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("START %s\n", told)
}

// startOnce does what Record does, up to the first stack.
func startOnce(t *testing.T, pid int) (st start) {
	s, err := Attach(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	st.Attached = ownMilliseconds()
	s.Walker.Warm()
	st.Warm = ownMilliseconds()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := s.recording(RecordOptions{})
	r.profile, r.stop = profile.New(), stop
	r.refreshHints(0)
	queue := sampler.NewQueue(queueLength)
	go r.sampler.Run(ctx, sampler.Config{Interval: time.Millisecond}, queue)
	for snap := range queue.Looks() {
		if st.First == 0 {
			r.bunch.looks = []*look.Look{snap}
			r.take()
			st.First = ownMilliseconds()
			stop()
		}
		queue.Done(snap)
	}
	if len(r.stack.Frames) > 0 {
		st.Top, st.Truncated = r.stack.Frames[0].Func.Name, r.stack.Truncated.String()
	}
	return st
}

func ownMilliseconds() float64 { return ownCPU().Seconds() * 1000 }

// startElsewhere starts the process and waits for its figures.
func startElsewhere(t testing.TB, pid int) (st start) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestStartChild$")
	child.Env = append(os.Environ(), startPID+"="+strconv.Itoa(pid))
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, told, _ := strings.Cut(string(out), "START ")
	if err := json.NewDecoder(strings.NewReader(told)).Decode(&st); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return st
}

// startsEach is how often goprof attaches to each JVM. The lowest CPU time counts: on a busy machine the same work uses
// more CPU time.
const startsEach = 5

// maxStartRatio bounds how many times longer a start takes on a JVM with 10,000 classes than on one with few.
const maxStartRatio = 2

// TestStart: goprof samples a JVM with 10,000 classes as soon as one with few, and the first stack is as good as any.
// BenchmarkStart measures how many milliseconds that takes.
func TestStart(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		many := jvmtest.Start(t, jdk, "truth.ManyClasses")
		few := jvmtest.Start(t, jdk, "truth.Shares", "--", "1")
		whole, most, least := 0, math.Inf(1), math.Inf(1)
		for range startsEach {
			st, other := startElsewhere(t, many.PID), startElsewhere(t, few.PID)
			t.Logf("%+v; with few classes %+v", st, other)
			if st.First == 0 || other.First == 0 {
				t.Fatal("a start gave no stack")
			}
			most, least = min(most, st.First), min(least, other.First)
			if st.Top != "" && st.Truncated == profile.Whole.String() {
				whole++
			}
		}
		if whole == 0 {
			t.Errorf("none of %d first stacks is whole", startsEach)
		}
		if t.Logf("%.2f times what a start takes with few classes", most/least); most > maxStartRatio*least {
			t.Errorf("a start takes %.1f ms of CPU, and %.1f with few classes", most, least)
		}
	})
}

// BenchmarkStart measures goprof's CPU time from its start to the first stack, on a JVM with 10,000 classes. The
// goal is 75 ms.
func BenchmarkStart(b *testing.B) {
	for _, jdk := range jvmtest.JDKs(b) {
		b.Run(jdk.String(), func(b *testing.B) {
			jvm := jvmtest.Start(b, jdk, "truth.ManyClasses")
			var sum start
			b.ResetTimer()
			for range b.N {
				st := startElsewhere(b, jvm.PID)
				sum.Attached += st.Attached
				sum.Warm += st.Warm
				sum.First += st.First
			}
			n := float64(b.N)
			b.ReportMetric(sum.Attached/n, "cpu-ms/attached")
			b.ReportMetric((sum.Warm-sum.Attached)/n, "cpu-ms/warm")
			b.ReportMetric((sum.First-sum.Warm)/n, "cpu-ms/first")
			b.ReportMetric(sum.First/n, "cpu-ms/start")
		})
	}
}
