//go:build linux

package session

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/sampler"
	"goprof/testdata/jvmtest"
)

// buildGoprof builds the command as users get it; where there is no Go, GOPROF_BINARY names one that was built elsewhere.
func buildGoprof(t testing.TB) string {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.Builds)
	if path := os.Getenv("GOPROF_BINARY"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "goprof")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -E goprof/arch/entry.start", "-o", path,
		"goprof/cmd/goprof")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

const (
	// maxRSS is what goprof may use at most of memory while it records, in KB.
	maxRSS = 100_000
	// maxOwnThreads bounds goprof's threads: the sampler's, and what Go's runtime needs.
	maxOwnThreads = 24
)

// TestRecordIsSmall watches the command while it records javac, whose stacks are deep and of
// many kinds, at 1,000 Hz.
func TestRecordIsSmall(t *testing.T) {
	goprof := buildGoprof(t)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", "--", "0", "30")
		dir := t.TempDir()
		cmd := exec.Command(goprof, "record", "--pid", strconv.Itoa(jvm.PID), "-d", "10s", "-r", "1000", "-t", "-q",
			"-o", filepath.Join(dir, "out.collapsed"), "--summary", filepath.Join(dir, "sum.json"))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		rss, threads := watch(t, cmd)
		sum := readSummary(t, filepath.Join(dir, "sum.json"))
		checkAccount(t, sum)
		t.Logf("%d samples, %d truncated, %d lost of %d; peak RSS %d KB, %d threads; CPU %v in %v",
			sum.Samples, sum.Truncated, sum.Lost, sum.Attempted, rss, threads, sum.OwnCPU, sum.Meta.Duration)
		if rss == 0 || rss > maxRSS {
			t.Errorf("peak RSS is %d KB", rss)
		}
		if threads == 0 || threads > maxOwnThreads {
			t.Errorf("%d threads", threads)
		}
	})
}

// watch waits for a command and returns its peak RSS in KB (VmHWM: ru_maxrss counts the program
// that started it, too) and the number of its threads.
func watch(t *testing.T, cmd *exec.Cmd) (rss, threads int) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	status := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "status")
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", cmd, err)
			}
			return rss, threads
		case <-time.After(10 * time.Millisecond):
			if raw, err := os.ReadFile(status); err == nil {
				rss, threads = max(rss, field(raw, "VmHWM:")), max(threads, field(raw, "Threads:"))
			}
		}
	}
}

// field takes a number out of /proc/PID/status; 0 if it is not there (any more).
func field(status []byte, name string) int {
	_, rest, _ := strings.Cut(string(status), "\n"+name)
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return 0
	}
	return n
}

func readSummary(t testing.TB, path string) *profile.Summary {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, err := output.ReadSummary(f)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// What a start costs is measured in a process that has done nothing else: this test binary,
// started anew with the JVM's number in startPID. startAgain names how often it attaches, and
// startProfile a file for a CPU profile; one start is too short for it:
//
//	GOPROF_START_AGAIN=200 GOPROF_START_PROFILE=/tmp/start.pprof go test ./sampler/session -run '^$' -bench Start -benchtime 1x
const (
	startPID     = "GOPROF_START_PID"
	startAgain   = "GOPROF_START_AGAIN"
	startProfile = "GOPROF_START_PROFILE"
)

// start is what a process that starts tells of itself: CPU milliseconds since it began.
type start struct {
	Attached, Warm, First float64 // the first stack is there
	Top, Truncated        string  // that stack
}

// TestStartChild is no test of its own: it is the process that BenchmarkStart starts.
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
	s.walker.Warm()
	st.Warm = ownMilliseconds()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := s.recording(RecordOptions{})
	r.profile, r.stop = profile.New(), stop
	r.news(0)
	queue := sampler.NewQueue(queueLength)
	go r.sampler.Run(ctx, sampler.Config{Interval: time.Millisecond}, queue)
	for snap := range queue.Snapshots() {
		if st.First == 0 {
			r.take(snap)
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

// startElsewhere starts the process and waits for what it tells.
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

// startsEach is how often each JVM is attached to, and the least CPU time counts: on a busy machine CPU time, too,
// passes faster.
const startsEach = 5

// maxStartRatio is how many times what a start on a JVM with few classes takes one with 10,000 may take.
const maxStartRatio = 2

// TestStart: a JVM with 10,000 classes is sampled as soon as one with few, and the first stack is as good as any. What it
// takes in milliseconds, BenchmarkStart tells.
func TestStart(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
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

// BenchmarkStart measures goprof's CPU time from its start to the first stack, on a JVM with
// 10,000 classes. The goal is 75 ms.
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
