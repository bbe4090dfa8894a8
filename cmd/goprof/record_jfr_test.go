//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/product"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/session"
	machine "goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// TestRecordsJFR: a JFR recording has the samples of the account, at times of the recording. The JDK's own command
// reads it.
func TestRecordsJFR(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Guest", "-Xmx64m", "--", "5", "15")
		dir := t.TempDir()
		name := filepath.Join(dir, "x.jfr")
		before := time.Now()
		sum := record(t, jvm.PID, name, "-d", "2.5", "-r", "200", "--chunk", "1s")
		onlyNamed(t, dir, "x.jfr")
		b := readJFR(t, name)
		if b.samples != sum.Samples || b.samples == 0 {
			t.Errorf("%d samples in the file, %d in the account", b.samples, sum.Samples)
		}
		if b.cpu != sum.Times.Sampled {
			t.Errorf("%v of CPU time in the file, %v in the account", b.cpu, sum.Times.Sampled)
		}
		if b.from < before.UnixNano() || b.to > time.Now().UnixNano() || b.to-b.from > int64(sum.Meta.Duration) {
			t.Errorf("samples from %v to %v", time.Unix(0, b.from), time.Unix(0, b.to))
		}
		if b.java == 0 || b.lines*100 < b.java*95 {
			t.Errorf("%d of %d Java frames have a line and an index", b.lines, b.java)
		}
		for _, once := range []string{"goprof.Account", "goprof.Pauses"} {
			if b.events[once] != 1 {
				t.Errorf("%d of %s", b.events[once], once)
			}
		}
		chunks := chunksOf(t, name)
		for _, each := range []string{"jdk.JVMInformation", "jdk.OSInformation", "jdk.CPUInformation"} {
			if b.events[each] < chunks {
				t.Errorf("%d of %s in %d chunks", b.events[each], each, chunks)
			}
		}
		if b.events["jdk.JavaThreadStatistics"] == 0 {
			t.Error("it is not told how many threads there were")
		}
		out, err := exec.Command(jdk.Tool("jfr"), "print", "--events", "jdk.ExecutionSample", name).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "jdk.ExecutionSample") {
			t.Errorf("jfr print: %v: %.500s", err, out)
		}
	})
}

// TestSecondsOfJFR: in each second the file has as many samples as the recording has told.
func TestSecondsOfJFR(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	s, err := session.Attach(jvm.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	file, err := outfile.Reserve(filepath.Join(t.TempDir(), "x.jfr"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := product.New(format.JFR, file, product.Options{Chunk: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &counter{JFR: product.JFROf(made), seconds: map[int64]int64{}}
	c.Start(s.Facts(), stop)
	p, sum, err := s.Record(ctx, session.RecordOptions{Duration: 3 * time.Second, Interval: 2 * time.Millisecond, Sink: c})
	if err != nil {
		t.Fatal(err)
	}
	name, err := c.Finish(&product.Recorded{Profile: p, Summary: &sum, At: s.Now()})
	if err != nil {
		t.Fatal(err)
	}
	b := readJFR(t, name)
	if b.samples != sum.Samples || b.samples == 0 || c.began != 1 {
		t.Errorf("%d samples in the file, %d in the account", b.samples, sum.Samples)
	}
	for second, n := range c.seconds {
		if b.seconds[second] != n {
			t.Errorf("second %d: %d samples in the file, %d told", second, b.seconds[second], n)
		}
	}
	if len(b.seconds) != len(c.seconds) {
		t.Errorf("%d seconds in the file, %d told", len(b.seconds), len(c.seconds))
	}
}

// TestWallJFR: the file has looks of wall-clock mode, with their states.
func TestWallJFR(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.States", "--", fifo)
	name := filepath.Join(t.TempDir(), "x.jfr")
	sum := record(t, jvm.PID, name, "-d", "3", "--mode", "wall", "--chunk", "1s")
	b := readJFR(t, name)
	if b.samples != sum.Samples || b.events["profiler.WallClockSample"] == 0 || b.events["jdk.ExecutionSample"] != 0 {
		t.Errorf("%d looks in the file, %d in the account, events %v", b.samples, sum.Samples, b.events)
	}
	for _, state := range []string{"STATE_PARKED", "STATE_SLEEPING", "STATE_IN_OBJECT_WAIT",
		"STATE_BLOCKED_ON_MONITOR_ENTER", "STATE_SOCKET", "STATE_FILE"} {
		if b.states[state] == 0 { // of some 60 samples; fewer if goprof had no CPU most of the time
			t.Errorf("no look in %s: %v", state, b.states)
		}
	}
	if b.states["STATE_RUNNABLE"]+b.states["STATE_WAITING_FOR_CPU"] == 0 {
		t.Errorf("no look at a thread that computes: %v", b.states)
	}
	if th := b.threads["is-sleeping"]; th.TID == 0 || th.JavaID == 0 || th.Virtual {
		t.Errorf("the sleeping thread is %+v", th)
	}
	if b.from < sum.Meta.Start.UnixNano() || b.to-b.from > int64(sum.Meta.Duration) {
		t.Errorf("looks from %v to %v", time.Unix(0, b.from), time.Unix(0, b.to))
	}
}

// TestVirtualJFR: virtual threads have their names and numbers.
func TestVirtualJFR(t *testing.T) {
	t.Parallel()
	jdks := jvmtest.JDKs(t)
	jdk := jdks[len(jdks)-1]
	if jdk.Version < 21 {
		t.Skip("virtual threads need JDK 21")
	}
	jvm := jvmtest.Start(t, jdk, "truth.VirtualLoad", "--", "4", "10")
	name := filepath.Join(t.TempDir(), "x.jfr")
	named := []string{"load-0", "load-2"}
	var b *readBack
	for range recordTries {
		sum := record(t, jvm.PID, name, "-d", "2", "-r", "200")
		if b = readJFR(t, name); b.samples != sum.Samples {
			t.Errorf("%d samples in the file, %d in the account", b.samples, sum.Samples)
		}
		if b.threads[named[0]].TID != 0 && b.threads[named[1]].TID != 0 {
			break // both had a CPU during the recording
		}
	}
	for _, thread := range named {
		if th := b.threads[thread]; !th.Virtual || th.JavaID == 0 || th.TID == 0 {
			t.Errorf("%s is %+v", thread, th)
		}
	}
}

// TestThreadsJFR: a recording has the starts and ends of threads that its list of threads shows. Threads that were
// there before it have no start.
func TestThreadsJFR(t *testing.T) {
	t.Parallel()
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.LongNames")
	name := filepath.Join(t.TempDir(), "x.jfr")
	before, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", jvm.PID))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("goprof", "record", "--pid", fmt.Sprint(jvm.PID), "-o", name, "-q")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitHandler(t, cmd.Process.Pid, syscall.SIGUSR1)
	long := func(name string) bool { return strings.HasPrefix(name, "a-thread-of-long-name-") }
	machine.WaitFor(t, "threads have come and gone", func() bool {
		if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		b, err := readRecording(name)
		return err == nil && slices.ContainsFunc(b.started, long) && slices.ContainsFunc(b.ended, long)
	})
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	// By their numbers: the kernel gives a new thread the name of the thread that made it.
	b := readJFR(t, name)
	for i, tid := range b.startedTIDs {
		if slices.Contains(before, fmt.Sprintf("/proc/%d/task/%d", jvm.PID, tid)) {
			t.Errorf("%s, %d, was there before: %q", b.started[i], tid, b.started)
		}
	}
}

// TestEmptyJFR: a recording without a sample leaves an older file as it is.
func TestEmptyJFR(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "x.jfr")
	if err := os.WriteFile(name, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, told := runGoprof(t, "record", "--pid", fmt.Sprint(jvm.PID), "-o", name, "-d", "2.5", "--chunk", "1s",
		"--thread", "^nobody$")
	if got, _ := os.ReadFile(name); code != exit.NoSamples || string(got) != "older" {
		t.Errorf("exit code %d, %q: %s", code, got, told)
	}
	onlyNamed(t, dir, "x.jfr")
}
