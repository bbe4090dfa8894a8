//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"goprof/output"
	"goprof/output/format"
	"goprof/output/jfr"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/session"
	machine "goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// readBack is what a recording has in it.
type readBack struct {
	events  map[string]int
	samples int64 // the looks that all samples stand for
	cpu     time.Duration
	java    int // frames of Java methods that have bytecode
	lines   int // frames of those with a line and an index
	states  map[string]int64
	threads map[string]profile.Thread // by Java name
	seconds map[int64]int64           // samples by the second of their wall time
	from    int64
	to      int64
	started []string // Java names of threads, or the kernel's
	ended   []string
}

func readJFR(t *testing.T, name string) *readBack {
	t.Helper()
	b, err := readRecording(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

func readRecording(name string) (*readBack, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	b := &readBack{events: map[string]int{}, states: map[string]int64{}, threads: map[string]profile.Thread{},
		seconds: map[int64]int64{}}
	r := jfr.NewReader(file, info.Size(), func(string, bool) bool { return true })
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		b.add(e)
	}
}

func (b *readBack) add(e *jfr.Event) {
	b.events[e.Name]++
	switch e.Name {
	case "jdk.ThreadStart":
		b.started = append(b.started, cmp.Or(e.Thread.JavaName, e.Thread.Name))
		return
	case "jdk.ThreadEnd":
		b.ended = append(b.ended, cmp.Or(e.Thread.JavaName, e.Thread.Name))
		return
	case "jdk.ExecutionSample", "jdk.NativeMethodSample", "profiler.WallClockSample":
	default:
		return
	}
	b.samples += e.Samples
	b.cpu += e.CPU
	b.states[e.State] += e.Samples
	b.threads[e.Thread.JavaName] = e.Thread
	b.seconds[e.At.Wall/int64(time.Second)] += e.Samples
	if b.from == 0 || e.At.Wall < b.from {
		b.from = e.At.Wall
	}
	b.to = max(b.to, e.At.Wall)
	for _, f := range e.Stack.Frames {
		if f.Kind.Java() && f.Kind != profile.NativeMethod && !strings.Contains(f.Func.Name, "$$") {
			b.java++
			if f.Line > 0 && f.BCI >= 0 {
				b.lines++
			}
		}
	}
}

// record runs goprof, which must succeed. It returns the account.
func record(t *testing.T, pid int, name string, args ...string) *profile.Summary {
	t.Helper()
	account := filepath.Join(t.TempDir(), "account.json")
	all := append([]string{"--pid", fmt.Sprint(pid), "-o", name, "--summary", account}, args...)
	if code, told := runRecord(t, all...); code != exit.OK {
		t.Fatalf("%v: exit code %d: %s", all, code, told)
	}
	text, err := os.ReadFile(account)
	if err != nil {
		t.Fatal(err)
	}
	var sum profile.Summary
	if err := json.Unmarshal(text, &sum); err != nil {
		t.Fatal(err)
	}
	return &sum
}

// onlyNamed demands these files in a folder and no others.
func onlyNamed(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	if strings.Join(found, " ") != strings.Join(names, " ") {
		t.Errorf("there are %q, want %q", found, names)
	}
}

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

// chunksOf counts the chunks of a file. Each chunk begins with its name, and has its size 8 bytes further on. How
// many chunks a recording of some seconds has depends on when goprof had a CPU: TestKilledJFR waits for a second
// one.
func chunksOf(t *testing.T, name string) (n int) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for ; len(text) > 0; n++ {
		size := uint64(0)
		if bytes.HasPrefix(text, []byte("FLR\x00")) && len(text) >= 16 {
			size = binary.BigEndian.Uint64(text[8:])
		}
		if size == 0 || size > uint64(len(text)) {
			t.Fatalf("%s: no chunk behind %d of them", name, n)
		}
		text = text[size:]
	}
	return n
}

// counter counts samples by the second, besides writing the file.
type counter struct {
	*jfrProduct
	seconds map[int64]int64
	began   int
}

func (c *counter) Begin(at profile.Instant, m profile.Meta) {
	c.began++
	c.jfrProduct.Begin(at, m)
}

func (c *counter) Sample(s *profile.Sample) {
	c.seconds[s.At.Wall/int64(time.Second)] += s.Looks()
	c.jfrProduct.Sample(s)
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
	file, err := output.Reserve(filepath.Join(t.TempDir(), "x.jfr"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := newProduct(format.JFR, file, productOptions{chunk: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &counter{jfrProduct: made.(*jfrProduct), seconds: map[int64]int64{}}
	c.begin(s.Facts(), stop)
	p, sum, err := s.Record(ctx, session.RecordOptions{Duration: 3 * time.Second, Interval: 2 * time.Millisecond, Sink: c})
	if err != nil {
		t.Fatal(err)
	}
	name, err := c.finish(&soFar{p, &sum, s.Now()})
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
		"STATE_BLOCKED_ON_MONITOR_ENTER", "STATE_SOCKET", "STATE_FILE", "STATE_RUNNABLE"} {
		if b.states[state] == 0 { // of some 60 samples; fewer if goprof had no CPU most of the time
			t.Errorf("no look in %s: %v", state, b.states)
		}
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

// waitForFile waits until a file has at least so many bytes. It returns how many it has.
func waitForFile(t *testing.T, name string, more int64) int64 {
	t.Helper()
	for range 2400 {
		if info, err := os.Stat(name); err == nil && info.Size() > more {
			return info.Size()
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not grow", name)
	return 0
}

// TestKilledJFR: whatever ends goprof, other tools can read the file that was written until then.
func TestKilledJFR(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	name := filepath.Join(t.TempDir(), "x.jfr")
	cmd := exec.Command("goprof", "record", "--pid", fmt.Sprint(jvm.PID), "-o", name, "--chunk", "1s", "-r", "200")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := waitForFile(t, name, 0)
	waitForFile(t, name, first)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	onlyNamed(t, filepath.Dir(name), "x.jfr")
	if b := readJFR(t, name); b.samples == 0 || b.events["goprof.Account"] != 0 {
		t.Errorf("%d samples, events %v", b.samples, b.events)
	}
	out, err := exec.Command(jvm.JDK.Tool("jfr"), "summary", name).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "jdk.ExecutionSample") {
		t.Errorf("jfr summary: %v: %s", err, out)
	}
	code, told := runGoprof(t, "report", name)
	if code != exit.OK || !strings.Contains(told, "was not ended: goprof was killed") {
		t.Errorf("goprof report: exit code %d: %s", code, told)
	}
}

// TestFlushJFR: SIGUSR1 writes the samples so far to the disk. Ctrl-C ends the file.
func TestFlushJFR(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	name := filepath.Join(t.TempDir(), "x.jfr")
	cmd := exec.Command("goprof", "record", "--pid", fmt.Sprint(jvm.PID), "-o", name, "-q")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Until goprof catches this signal, the signal would end goprof.
	awaitHandler(t, cmd.Process.Pid, syscall.SIGUSR1)
	for _, err := os.Stat(name); err != nil; _, err = os.Stat(name) { // until there is a sample
		if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if b := readJFR(t, name); b.samples == 0 || b.events["goprof.Account"] != 0 {
		t.Errorf("after SIGUSR1: %d samples, events %v", b.samples, b.events)
	}
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if b := readJFR(t, name); b.events["goprof.Account"] != 1 {
		t.Errorf("after Ctrl-C: events %v", b.events)
	}
}

// TestThreadsJFR: a recording has the starts and ends of threads that its list of threads shows. Threads that were
// there before it have no start.
func TestThreadsJFR(t *testing.T) {
	t.Parallel()
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.LongNames")
	name := filepath.Join(t.TempDir(), "x.jfr")
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
	if b := readJFR(t, name); slices.Contains(b.started, "mother") || slices.Contains(b.started, "main") {
		t.Errorf("these have started: %q", b.started)
	}
}

// awaitHandler waits until a process catches a signal.
func awaitHandler(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	machine.WaitFor(t, "the signal is caught", func() bool {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, caught, _ := strings.Cut(string(status), "\nSigCgt:\t")
		mask := uint64(0)
		fmt.Sscanf(caught, "%x", &mask)
		return mask>>(sig-1)&1 != 0
	})
}

// TestFullDiskJFR: the disk is full in the middle of a recording. That ends the recording, and keeps what was
// written before.
func TestFullDiskJFR(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a small disk can only be mounted by root")
	}
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Shares", "--", "1", "2")
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	if err := os.WriteFile(filepath.Join(dir, "other"), make([]byte, 900<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "x.jfr")
	code, told := runGoprof(t, "record", "--pid", fmt.Sprint(jvm.PID), "-o", name, "--chunk", "1s", "-r", "500")
	if code != exit.OutputFailed || !strings.Contains(told, "events are lost") ||
		!strings.Contains(told, "no space left on device") || !strings.Contains(told, "try: goprof report ") {
		t.Errorf("exit code %d: %s", code, told)
	}
	onlyNamed(t, dir, "other", "x.jfr")
	if b := readJFR(t, name); b.samples == 0 {
		t.Error("nothing was kept")
	}
}

// TestLoop: each second has a file with an account of its own. Of the files of this run, the newest ones are kept.
func TestLoop(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	for _, end := range []string{".jfr", ".collapsed"} {
		dir := t.TempDir()
		foreign := filepath.Join(dir, "a-20000101-000000"+end)
		if err := os.WriteFile(foreign, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("goprof", "record", "--pid", fmt.Sprint(jvm.PID), "-o", filepath.Join(dir, "a"+end), "-r", "200",
			"--loop", "1s", "--keep", "2")
		var told strings.Builder
		cmd.Stderr = &told
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun := map[string]bool{}
		machine.WaitFor(t, "a fourth file is begun", func() bool {
			names, _ := filepath.Glob(filepath.Join(dir, "a-2*"+end))
			for _, name := range names {
				begun[name] = true
			}
			return len(begun) >= 4
		})
		time.Sleep(500 * time.Millisecond) // so that this file has samples, too
		cmd.Process.Signal(os.Interrupt)
		kept := 3 // two, and the last one
		switch err := cmd.Wait(); {
		case exit.Code(cmd.ProcessState.ExitCode()) == exit.NoSamples:
			kept = 2 // the machine has stood still for so long that the last file had just begun
		case err != nil:
			t.Errorf("%v: %s", err, told.String())
		}
		if got, _ := os.ReadFile(foreign); string(got) != "precious" {
			t.Errorf("another's file holds %q", got)
		}
		made, _ := filepath.Glob(filepath.Join(dir, "a-2*"+end))
		if len(made) != kept {
			t.Errorf("there are %q: %s", made, told.String())
		}
		for _, name := range made[1:] {
			if end == ".jfr" {
				if b := readJFR(t, name); b.samples == 0 || b.events["goprof.Account"] != 1 {
					t.Errorf("%s: %d samples, events %v", name, b.samples, b.events)
				}
			} else if _, err := os.Stat(output.SummaryPath(name)); err != nil {
				t.Error(err)
			}
		}
		if strings.Count(told.String(), "samples of ") < 3 {
			t.Errorf("it says %s", told.String())
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

// TestRecordsFormats: the file's name chooses the format. Only the file is left. The spool passes on everything that
// a JFR file would hold.
func TestRecordsFormats(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	for end, begins := range map[string]string{
		".html": "<!DOCTYPE html>", ".svg": "<?xml", ".json": "{", ".pb.gz": "\x1f\x8b", ".pprof": "\x1f\x8b",
		".speedscope.json": "{", ".firefox.json.gz": "\x1f\x8b",
	} {
		dir := t.TempDir()
		record(t, jvm.PID, filepath.Join(dir, "x"+end), "-d", "0.3", "-r", "200")
		onlyNamed(t, dir, "x"+end)
		got, err := os.ReadFile(filepath.Join(dir, "x"+end))
		if err != nil || !strings.HasPrefix(strings.ToLower(string(got)), strings.ToLower(begins)) {
			t.Errorf("%s: %v, %.40q", end, err, got)
		}
		if end == ".html" && !strings.Contains(string(got), "cpu mode") {
			t.Error("the page does not say what was recorded")
		}
	}
	dir := t.TempDir()
	var stream []byte
	for range recordTries {
		cmd := exec.Command("goprof", "record", "--pid", fmt.Sprint(jvm.PID), "-d", "0.3", "-q", "-f", "jfr", "-o", "-")
		out, err := cmd.Output()
		if exit.Code(cmd.ProcessState.ExitCode()) == exit.NoSamples {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		stream = out
		break
	}
	name := filepath.Join(dir, "stream.jfr")
	if err := os.WriteFile(name, stream, 0o600); err != nil {
		t.Fatal(err)
	}
	if b := readJFR(t, name); b.samples == 0 || b.events["goprof.Account"] != 1 {
		t.Errorf("of a stream: %d samples, events %v", b.samples, b.events)
	}
}

// TestSpoolIsConverted: the samples of a spooled recording are in the file that it is converted to.
func TestSpoolIsConverted(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	name := filepath.Join(t.TempDir(), "x.pb.gz")
	sum := record(t, jvm.PID, name, "-d", "2", "-r", "200")
	file, err := recording.Open(name, recording.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := int64(0)
	if err := file.Each(func(s *profile.Sample) error { n += s.Looks(); return nil }); err != nil {
		t.Fatal(err)
	}
	if n != sum.Samples || n == 0 {
		t.Errorf("%d samples in the file, %d in the account", n, sum.Samples)
	}
}
