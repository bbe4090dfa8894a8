package jfr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"goprof/profile"
)

var (
	epoch   = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	uptime  = int64(12345 * time.Second) // System.nanoTime at epoch
	worker  = profile.Thread{TID: 4712, Name: "worker-1", JavaID: 21, JavaName: "worker-1"}
	virtual = profile.Thread{TID: 4713, Name: "ForkJoinPool-1-", JavaID: 42, JavaName: "request 7", Virtual: true}
)

func moment(after time.Duration) profile.Instant {
	return profile.Instant{Wall: epoch.Add(after).UnixNano(), Ticks: uptime + int64(after)}
}

// frames makes each Func of a stack once.
type frames map[string]*profile.Func

func (f frames) of(name, module string) *profile.Func {
	if f[name] == nil {
		file := ""
		if module == "" {
			file = "Shop.java"
		}
		f[name] = &profile.Func{Name: name, Module: module, File: file}
	}
	return f[name]
}

var functions = frames{}

func javaFrame(kind profile.Kind, name string, line, bci int32) profile.Frame {
	return profile.Frame{Func: functions.of(name, ""), Kind: kind, Line: line, BCI: bci}
}

func nativeFrame(name string) profile.Frame {
	return profile.Frame{Func: functions.of(name, "/usr/lib/jvm/lib/server/libjvm.so"), Kind: profile.Native, BCI: -1}
}

var root = []profile.Frame{
	javaFrame(profile.C2, "shop.Server.serve", 40, 17),
	javaFrame(profile.C1, "shop.Server.run", 31, 8),
	javaFrame(profile.Interpreted, "java.lang.Thread.run", 840, 11),
}

func stackOn(frames ...profile.Frame) *profile.Stack {
	return &profile.Stack{Frames: append(frames, root...)}
}

// stacks returns one stack of each kind.
func stacks() []*profile.Stack {
	inlined := javaFrame(profile.Inlined, "shop.Price.round", 12, 3)
	inlined.Sure = profile.Guessed
	cutOff := stackOn(nativeFrame("G1ParTask::work(unsigned int)"))
	cutOff.Truncated = profile.NoUnwindInfo
	stub := profile.Frame{Func: functions.of("jlong_disjoint_arraycopy", ""), Kind: profile.Stub, BCI: -1}
	return []*profile.Stack{
		stackOn(inlined, javaFrame(profile.C2, "shop.Price.of", 88, 300)),
		stackOn(javaFrame(profile.NativeMethod, "sun.nio.ch.Net.poll", 0, -1)),
		stackOn(nativeFrame("epoll_wait"), javaFrame(profile.NativeMethod, "sun.nio.ch.EPoll.wait", 0, -1)),
		cutOff,
		stackOn(stub),
		{},
	}
}

// aSecond writes a sample each millisecond.
func aSecond(t testing.TB, w *Writer, from time.Duration) int {
	t.Helper()
	all := stacks()
	for i := range 1000 {
		at := moment(from + time.Duration(i)*time.Millisecond)
		s := profile.Sample{At: at, Thread: worker, Stack: all[i%len(all)], CPU: time.Millisecond}
		if i%3 == 0 {
			s.Thread = virtual
		}
		if err := w.Sample(&s); err != nil {
			t.Fatal(err)
		}
	}
	return 1000
}

// setFacts sets all facts that a file can have.
func setFacts(w *Writer, mode string) {
	w.SetMeta(profile.Meta{Version: "1.0", Host: "host", PID: 4711, MainClass: "shop.Server", JVM: "OpenJDK 25",
		Collector: "G1", Mode: mode, Engine: "ptrace", Interval: time.Millisecond, Weight: profile.CPUTime})
	w.SetJVM(JVM{Name: "OpenJDK 64-Bit Server VM", Version: "25+36", MainClass: "shop.Server",
		Start: epoch.Add(-time.Hour), PID: 4711})
	w.SetOS("Linux 6.12")
	w.SetCPU(CPU{Type: "amd64", Description: "a CPU", Sockets: 1, Cores: 2, Threads: 4})
}

var account = profile.Summary{
	Attempted: 130, Samples: 120, Whole: 100, Truncated: 20, Lost: 10, Rate: 1000, RateReached: 998.5, Threads: 3,
	TruncatedBy: map[string]int64{profile.NoUnwindInfo.String(): 20}, LostBy: map[string]int64{profile.Stale.String(): 10},
	Pauses: profile.Pauses{Count: 120, P50: 20 * time.Microsecond, P99: 60 * time.Microsecond,
		Max: time.Millisecond, Total: 3 * time.Millisecond},
	Notes: []profile.Note{{Name: "library-replaced", Text: "libc.so.6 was replaced", Remedy: "restart it"}},
}

func finish(t testing.TB, w *Writer, at profile.Instant) {
	t.Helper()
	for _, err := range []error{
		w.Threads(at, ThreadCount{Active: 3, Daemon: 1, Started: 9, Peak: 5}),
		w.ThreadEnd(at, worker), w.Account(at, &account), w.Close(at),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// recording is a file of some seconds in several chunks.
func recording(t testing.TB) []byte {
	t.Helper()
	var file bytes.Buffer
	w := NewWriter(&file, Options{ChunkLength: 2 * time.Second})
	setFacts(w, "cpu")
	if err := w.ThreadStart(moment(0), worker); err != nil {
		t.Fatal(err)
	}
	for s := range 5 {
		aSecond(t, w, time.Duration(s)*time.Second)
	}
	finish(t, w, moment(5*time.Second))
	return file.Bytes()
}

// wallRecording has one sample in each state.
func wallRecording(t testing.TB) []byte {
	t.Helper()
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	setFacts(w, "wall")
	for s := range profile.State(len(stateNames)) {
		stack := stackOn(profile.Frame{Func: functions.of(s.Label(""), ""), Kind: profile.StateFrame, BCI: -1},
			javaFrame(profile.C2, "shop.Pool.take", 7, 7))
		if err := w.Sample(&profile.Sample{At: moment(time.Duration(s)), Thread: worker, Stack: stack, State: s, Wall: true,
			Count: int64(s) + 1, Span: time.Duration(s+1) * 10 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, w, moment(time.Second))
	return file.Bytes()
}

// brokenDisk takes a number of bytes, and then half of a write.
type brokenDisk struct {
	*os.File
	room int
}

var errFull = errors.New("no space left on device")

func (d *brokenDisk) Write(b []byte) (int, error) {
	if d.room -= len(b); d.room < 0 {
		n, _ := d.File.Write(b[:len(b)/2])
		return n, errFull
	}
	return d.File.Write(b)
}

// TestFullDisk: what was written before the error is a whole file. The error says what is lost.
func TestFullDisk(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "full.jfr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := NewWriter(&brokenDisk{f, 60_000}, Options{ChunkLength: time.Second})
	stack := stacks()[0]
	for i := range 10_000 {
		err = w.Sample(&profile.Sample{At: moment(time.Duration(i) * time.Millisecond), Thread: worker, Stack: stack})
		if err != nil {
			break
		}
	}
	var failed *WriteError
	if !errors.As(err, &failed) || !errors.Is(err, errFull) || !failed.Cut || failed.Whole == 0 || failed.Events != 1000 {
		t.Fatalf("%v", err)
	}
	if again := w.Tick(moment(time.Hour)); again != err {
		t.Errorf("after %v it says %v", err, again)
	}
	info, err := f.Stat()
	if err != nil || info.Size() != failed.Whole || info.Size() != w.Written() {
		t.Errorf("%d bytes on the disk, %d in whole chunks (%v)", info.Size(), failed.Whole, err)
	}
	n := 0
	eachEvent(t, f, func(*Event) { n++ })
	if n == 0 || n%1000 != 0 {
		t.Errorf("%d events in whole chunks of 1000", n)
	}
}

// TestMemory: a chunk ends when it is large. So memory does not grow with time, nor with the number of stacks or
// threads.
func TestMemory(t *testing.T) {
	chunks := &chunkSizes{}
	w := NewWriter(chunks, Options{ChunkBytes: 256 << 10})
	for i := range 200_000 {
		s := profile.Sample{At: moment(time.Duration(i) * time.Microsecond),
			Thread: profile.Thread{TID: i, Name: fmt.Sprint("t", i/10)},
			Stack:  stackOn(javaFrame(profile.C2, "a.B.c", int32(i), 1))}
		if err := w.Sample(&s); err != nil {
			t.Fatal(err)
		}
	}
	if chunks.largest > 512<<10 {
		t.Errorf("a write of %d bytes", chunks.largest)
	}
	if n := cap(w.events) + cap(w.body) + cap(w.pools.stacks.data); n > 4<<20 {
		t.Errorf("%d bytes are kept", n)
	}
}

type chunkSizes struct{ largest int }

func (c *chunkSizes) Write(b []byte) (int, error) {
	c.largest = max(c.largest, len(b))
	return len(b), nil
}

// TestSampleAllocates: a sample with a known stack allocates nothing.
func TestSampleAllocates(t *testing.T) {
	w := NewWriter(&chunkSizes{}, Options{})
	all := stacks()
	for range 3 {
		aSecond(t, w, 0)
	}
	i := 0
	n := testing.AllocsPerRun(2000, func() {
		i++
		s := profile.Sample{At: moment(time.Duration(i)), Thread: worker, Stack: all[i%len(all)], CPU: 1}
		if err := w.Sample(&s); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0.01 {
		t.Errorf("%.2f allocations a sample", n)
	}
}

// BenchmarkSample writes samples of a program with many stacks of 60 frames, in chunks of a minute at 1,000 Hz. ns/op
// is the CPU time of a sample.
func BenchmarkSample(b *testing.B) {
	var many []*profile.Stack
	for i := range 5000 {
		s := &profile.Stack{}
		for d := range 60 {
			n := d
			if d < 8 {
				n = (i*7 + d*13) % 400
			}
			name := fmt.Sprintf("com.example.service.part%d.Component%d.method%d", n%7, n, d)
			s.Frames = append(s.Frames, javaFrame(profile.Kind(d%4), name, int32(n), int32(d)))
		}
		many = append(many, s)
	}
	w := NewWriter(&chunkSizes{}, Options{})
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		at := moment(time.Duration(i) * time.Millisecond)
		s := profile.Sample{At: at, Thread: worker, Stack: many[i*7919%len(many)], CPU: time.Millisecond}
		if err := w.Sample(&s); err != nil {
			b.Fatal(err)
		}
	}
}

// TestOnlyTheLastChunkIsFinal: if Close finds an old chunk, that chunk ends first, and is not marked as the last one.
func TestOnlyTheLastChunkIsFinal(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	if err := errors.Join(w.Tick(moment(0)), w.Close(moment(2*maxChunkLength))); err != nil {
		t.Fatal(err)
	}
	var final []bool
	for b := file.Bytes(); len(b) > headerSize; {
		size := int(binary.BigEndian.Uint64(b[8:]))
		final = append(final, b[67]&finalChunk != 0)
		b = b[size:]
	}
	if !slices.Equal(final, []bool{false, true}) {
		t.Errorf("final: %v", final)
	}
}
