package pprof

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "github.com/google/pprof/profile"

	"goprof/profile"
)

const libjvm = "/usr/lib/jvm/lib/server/libjvm.so"

var (
	round = &profile.Func{Name: "shop.Price.round", File: "Price.java"}
	price = &profile.Func{Name: "shop.Price.of", File: "Price.java"}
	serve = &profile.Func{Name: "shop.Server.serve", File: "Server.java"}
	work  = &profile.Func{Name: "G1ParTask::work(unsigned int)", Module: libjvm, Build: "abcdef0123"}
	meta  = profile.Meta{Version: "1.0", Host: "host", PID: 4711, JVM: "OpenJDK 25", Mode: "cpu", Engine: "ptrace",
		Start: time.Unix(1773500966, 0), Duration: time.Minute, Interval: time.Millisecond, Weight: profile.CPUTime}
)

// someSamples are four samples: two of one stack and thread, one of another thread, and a native one that is cut.
func someSamples() []profile.Sample {
	java := &profile.Stack{Frames: []profile.Frame{
		{Func: round, Kind: profile.Inlined, Line: 12, BCI: -1},
		{Func: price, Kind: profile.Inlined, Line: 30, BCI: -1},
		{Func: serve, Kind: profile.C2, Line: 88, BCI: -1},
		{Func: serve, Kind: profile.C2, Line: 91, BCI: -1},
	}}
	native := &profile.Stack{Truncated: profile.NoUnwindInfo, Frames: []profile.Frame{
		{Func: work, Kind: profile.Native, BCI: -1},
	}}
	virtual := profile.Thread{Name: "worker-1", TID: 4712, JavaName: "request 7", Virtual: true}
	return []profile.Sample{
		{Stack: java, Thread: virtual, Count: 2, CPU: 2 * time.Millisecond},
		{Stack: java, Thread: virtual, Count: 1, CPU: 3 * time.Millisecond},
		{Stack: java, Thread: profile.Thread{JavaName: "worker-2", TID: 4713}, Count: 1, CPU: time.Millisecond,
			NoState: true},
		{Stack: native, Thread: profile.Thread{JavaName: "GC Thread#0", TID: 4720}, Count: 5, CPU: 5 * time.Millisecond,
			NoState: true},
	}
}

// ours are the options for goprof's CPU recordings.
var ours = Options{Weight: profile.CPUTime, States: true}

func written(t testing.TB) []byte {
	t.Helper()
	b := NewBuilder(ours)
	for _, s := range someSamples() {
		b.Add(&s)
	}
	var file bytes.Buffer
	if err := b.Write(&file, meta); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestLocations: the usual library for this format reads goprof's file.
func TestLocations(t *testing.T) {
	p, err := pb.ParseData(written(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	if len(p.Sample) != 3 || len(p.Location) != 4 || len(p.Function) != 5 {
		t.Fatalf("%d samples, %d locations, %d functions", len(p.Sample), len(p.Location), len(p.Function))
	}
	var lines []string
	for _, l := range p.Sample[0].Location[0].Line {
		lines = append(lines, fmt.Sprintf("%s:%d", l.Function.Name, l.Line))
	}
	if d := cmp.Diff([]string{"shop.Price.round:12", "shop.Price.of:30", "shop.Server.serve:88"}, lines); d != "" {
		t.Error(d)
	}
	if v := p.Sample[0].Value; v[0] != 3 || v[1] != int64(5*time.Millisecond) {
		t.Errorf("%v", v)
	}
	if l := p.Sample[2].Location[0]; l.Mapping == nil || l.Mapping.BuildID != "abcdef0123" || l.Mapping.File != libjvm {
		t.Errorf("%+v", l)
	}
}

// TestRoundTrip: everything that the format can hold is read as it was written.
func TestRoundTrip(t *testing.T) {
	f, err := Read(bytes.NewReader(written(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := someSamples()
	want[0].Count, want[0].CPU = 3, 5*time.Millisecond
	want = append(want[:1], want[2:]...)
	err = f.Each(func(s *profile.Sample, values []int64) error {
		s.Count, s.CPU = values[0], time.Duration(values[1])
		if d := cmp.Diff(want[0], *s); d != "" {
			t.Error(d)
		}
		want = want[1:]
		return nil
	})
	if err != nil || len(want) != 0 {
		t.Errorf("%v, %d samples are missing", err, len(want))
	}
	if f.Meta.Duration != time.Minute || !f.Meta.Start.Equal(meta.Start) {
		t.Errorf("%+v", f.Meta)
	}
}

// TestFullKeepsNothing: the builder keeps no names from samples without room.
func TestFullKeepsNothing(t *testing.T) {
	b := NewBuilder(ours)
	b.room = 2
	for i := range 1000 {
		b.Add(&profile.Sample{Count: 1, Stack: &profile.Stack{Frames: []profile.Frame{
			{Func: &profile.Func{Name: fmt.Sprintf("f%d", i), Module: fmt.Sprintf("/lib/%d.so", i)}, Kind: profile.Native}}}})
	}
	if len(b.functions) > 4 || len(b.locations) > 4 || len(b.mappings) > 4 || b.Overflow != 998 {
		t.Errorf("%d functions, %d locations, %d images, %d without room", len(b.functions), len(b.locations),
			len(b.mappings), b.Overflow)
	}
}

// TestFull: samples without room are counted under one stack.
func TestFull(t *testing.T) {
	b := NewBuilder(ours)
	b.room = 2
	s := someSamples()[0]
	for tid := range 100 {
		s.Thread.TID = tid + 1
		b.Add(&s)
	}
	var file bytes.Buffer
	if err := b.Write(&file, meta); err != nil {
		t.Fatal(err)
	}
	f, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	err = f.Each(func(_ *profile.Sample, values []int64) error {
		n += values[0]
		return nil
	})
	if err != nil || n != 200 || b.Overflow != 196 || len(b.samples) != 3 {
		t.Errorf("%d samples, %d without room, %d sums, %v", n, b.Overflow, len(b.samples), err)
	}
}

// TestPprof: go tool pprof shows our file.
func TestPprof(t *testing.T) {
	if testing.Short() {
		t.Skip("go builds its pprof: not with -short")
	}
	if _, err := exec.LookPath("go"); err != nil && os.Getenv("GOPROF_EMULATED") != "" {
		t.Skip("there is no go here")
	}
	name := filepath.Join(t.TempDir(), "cpu.pb.gz")
	if err := os.WriteFile(name, written(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{
		"-top":    "6ms 54.55% 54.55%        6ms 54.55%  shop.Price.round (inline)",
		"-raw":    "4712",
		"-traces": "thread:  worker-1",
	} {
		out, err := exec.Command("go", "tool", "pprof", mode, name).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("pprof %s: %v, no %q in\n%s", mode, err, want, out)
		}
	}
}

// TestBad: reading a file of another format returns an error that says so.
func TestBad(t *testing.T) {
	bomb := new(bytes.Buffer)
	z := gzip.NewWriter(bomb)
	zeros := make([]byte, 1<<20)
	for range maxUnpacked>>20 + 1 {
		if _, err := z.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	file := written(t)
	for name, data := range map[string][]byte{
		"garbage": []byte("no profile at all"), "empty": nil, "cut off": file[:len(file)/2], "a bomb": bomb.Bytes(),
		"a bomb of small messages": bytes.Repeat([]byte{0x12, 0}, 4<<20),
	} {
		var bad *Bad
		if _, err := Read(bytes.NewReader(data)); !errors.As(err, &bad) || bad.TooMuch != strings.Contains(name, "bomb") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	z, err := gzip.NewReader(bytes.NewReader(written(f)))
	if err != nil {
		f.Fatal(err)
	}
	plain := new(bytes.Buffer)
	if _, err := plain.ReadFrom(z); err != nil {
		f.Fatal(err)
	}
	f.Add(plain.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		err = p.Each(func(s *profile.Sample, values []int64) error {
			for _, f := range s.Stack.Frames {
				if f.Func == nil || f.Func.Name == "" || f.Line < 0 {
					t.Errorf("%+v", f)
				}
			}
			if len(values) != len(p.Types) {
				t.Errorf("%d values of %q", len(values), p.Types)
			}
			return nil
		})
		if err != nil && !errors.As(err, new(*Bad)) {
			t.Error(err)
		}
	})
}

// BenchmarkAdd adds samples of 1,000 stacks with 40 frames each.
func BenchmarkAdd(b *testing.B) {
	var many []*profile.Stack
	for i := range 1000 {
		s := &profile.Stack{}
		for d := range 40 {
			fn := &profile.Func{Name: fmt.Sprint("m", (i*d)%300)}
			s.Frames = append(s.Frames, profile.Frame{Func: fn, Kind: profile.Kind(d % 4), Line: int32(d)})
		}
		many = append(many, s)
	}
	builder := NewBuilder(ours)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		builder.Add(&profile.Sample{Stack: many[i%len(many)], Thread: profile.Thread{JavaName: "t", TID: 7}, CPU: 1})
	}
}
