//go:build linux

package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/product"
	"goprof/output/jfr"
	"goprof/profile"
	machine "goprof/testdata/host"
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
	ended   []string
	started []string // Java names of threads, or the kernel's

	startedTIDs []int // of the threads in started
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
		b.startedTIDs = append(b.startedTIDs, e.Thread.TID)
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
	*product.JFR
	seconds map[int64]int64
	began   int
}

func (c *counter) Begin(at profile.Instant, m profile.Meta) {
	c.began++
	c.JFR.Begin(at, m)
}

func (c *counter) Sample(s *profile.Sample) {
	c.seconds[s.At.Wall/int64(time.Second)] += s.Looks()
	c.JFR.Sample(s)
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
