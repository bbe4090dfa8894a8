package firefox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/output/recording"
	"goprof/profile"
	"goprof/testdata/sources"
)

func written(t testing.TB, src recording.Source, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, src, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCPU: each thread has a track of samples ordered by time, with CPU time and inlined frames.
func TestCPU(t *testing.T) {
	const java = "shop.Server.serve:95/0 Java, interpreted;shop.Server.serve:91/0 Java, C1;" +
		"shop.Server.serve:88/0 Java, C2;" +
		"shop.Price.of:30/1 Java, inlined;shop.Price.round:12/2 Java, inlined"
	const native = "[truncated: no unwind info]:0/0 Other;G1ParTask::work(unsigned int):0/0 JVM;write:0/0 Native"
	want := []string{
		"shop.Main \"4711-process\"", "0  0 0", "1000  0 0", "gc 2-3 G1 Young", "safepoint 4 ?",
		"worker-1 4712", "1 " + java + " 1 1000000", "2 " + java + " 2 2000000", "3 " + native + " 1 500000",
		"first sample 1", "last sample 3", "truncated stack 3 no unwind info",
		"request 7 virtual #77 \"virtual-77\"", "6 " + java + " 1 3000000", "first sample 6", "last sample 6",
		"GC Thread#0 4720", "5 " + native + " 1 1000000", "first sample 5", "last sample 5",
		"truncated stack 5 no unwind info",
		"main 4711", "4  1 1000000", "first sample 4", "last sample 4",
	}
	want[4] = "safepoint 4 <b>Cleanup"
	f := checked(t, written(t, sources.CPU(), Options{}))
	if d := cmp.Diff(want, f.lines()); d != "" {
		t.Error(d)
	}
	if f.Meta.StartTime != float64(sources.Start.UnixNano()/1000)/1000 || f.Meta.Product != "shop.Main" {
		t.Errorf("%+v", f.Meta)
	}
	if len(f.Libs) != 2 || f.Libs[0].Path != sources.Work.Module || f.Libs[0].Name != "libjvm.so" {
		t.Errorf("%+v", f.Libs)
	}
	files := f.Shared.Sources.Filename
	if len(files) != 2 || f.Shared.StringArray[files[0]] != "Server.java" {
		t.Errorf("%v of %q", files, f.Shared.StringArray)
	}
}

// TestWall: waiting is a marker and a category. It is drawn in its real length, without CPU time.
func TestWall(t *testing.T) {
	for name, src := range map[string]recording.Source{
		"fake": sources.Wall(), "JFR": sources.RealJFR(t, sources.Wall(), true),
	} {
		f := checked(t, written(t, src, Options{}))
		var got []string
		for _, line := range f.lines() {
			if i := strings.LastIndex(line, ";"); i > 0 {
				at, _, _ := strings.Cut(line, " ")
				line = at + " " + line[i+1:]
			}
			got = append(got, line)
		}
		want := []string{
			"worker-1 4712", "0 [running]:0/0 (as its caller) 1 9000000", "10 [socket]:0/0 Waits for I/O 49 0",
			"500 [socket]:0/0 Waits for I/O 1 0", "510 [running]:0/0 (as its caller) 1 10000000",
			"first sample 0", "socket 10-510 ", "last sample 510",
			"request 7 virtual #77 \"virtual-77\"", "0 [parked]:0/0 Idle 51 0", "510 [parked]:0/0 Idle 1 0",
			"first sample 0", "last sample 0", "parked 0-520 ",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestNoTimes: a recording without times is refused, and the message says why.
func TestNoTimes(t *testing.T) {
	var lacks *recording.Lacks
	if err := Write(io.Discard, sources.Untimed(), Options{}); !errors.As(err, &lacks) || lacks.Remedy == "" ||
		!strings.Contains(err.Error(), "times") {
		t.Error(err)
	}
}

func edges() map[string]*sources.Fake {
	return map[string]*sources.Fake{"empty": sources.Empty(), "one": sources.One(), "deep": sources.Deep(2048),
		"hostile": sources.Hostile(), "parts": sources.Parts()}
}

// TestEdges: no samples, one sample, the deepest possible stack, and malicious names and numbers.
func TestEdges(t *testing.T) {
	for name, src := range edges() {
		f := checked(t, written(t, src, Options{}))
		samples := 0
		for _, th := range f.Threads {
			if !th.IsMainThread {
				samples += th.Samples.Length
			}
		}
		if samples != len(src.Samples) && name != "hostile" || name == "hostile" && samples < len(src.Samples) {
			t.Errorf("%s: %d samples of %d", name, samples, len(src.Samples))
		}
		if name == "deep" && (f.Shared.StackTable.Length != 2048 || f.Shared.FrameTable.Length != 1) {
			t.Errorf("%d stacks, %d frames", f.Shared.StackTable.Length, f.Shared.FrameTable.Length)
		}
	}
}

// TestIntervals: if a CPU recording has no CPU times, each look counts as one interval.
func TestIntervals(t *testing.T) {
	src := sources.CPU()
	for i := range src.Samples {
		src.Samples[i].CPU = 0
	}
	f := checked(t, written(t, src, Options{}))
	for _, th := range f.Threads[1:] {
		for i, d := range th.Samples.ThreadCPUDelta {
			if d == nil || *d != int64(th.Samples.Weight[i]*1e6) {
				t.Errorf("%v of %v", th.Samples.ThreadCPUDelta, th.Samples.Weight)
			}
		}
	}
}

// TestBytes: the weight of an allocation is its bytes.
func TestBytes(t *testing.T) {
	src := sources.One()
	src.Samples[0].Bytes = 4096
	f := checked(t, written(t, src, Options{}))
	if s := f.Threads[0].Samples; s.WeightType != "bytes" || s.Weight[0] != 4096 {
		t.Errorf("%+v", s)
	}
}

// TestTooMany: samples that do not fit are merged, and keep their weights. The file and the caller both get a note.
func TestTooMany(t *testing.T) {
	var told []string
	f := checked(t, written(t, sources.Many(20_000), Options{Samples: 5000, Tracks: 8,
		Tell: func(s string) { told = append(told, s) }}))
	weight, rows := 0.0, 0
	for _, th := range f.Threads {
		rows += th.Samples.Length
		for _, n := range th.Samples.Weight {
			weight += n
		}
	}
	if weight != 20_000 || rows > 5000 || len(f.Threads) != 8 || len(told) != 1 {
		t.Errorf("%v looks in %d rows of %d threads; %q", weight, rows, len(f.Threads), told)
	}
	if e := f.Meta.Extra[0].Entries; e[len(e)-1].Value != told[0] {
		t.Errorf("%+v", e)
	}
}

// TestVirtual: some of many virtual threads have tracks. The others share the tracks of their pools.
func TestVirtual(t *testing.T) {
	src := sources.Empty()
	for i := range 1000 {
		th := profile.Thread{TID: 4700 + i%4, Virtual: true, JavaID: int64(i + 100)}
		if i%2 == 0 {
			th.JavaName = fmt.Sprint("request-", i)
		}
		src.Samples = append(src.Samples, profile.Sample{At: sources.At(time.Duration(i)), CPU: 1, Thread: th,
			Stack: sources.JavaStack()})
	}
	f := checked(t, written(t, src, Options{}))
	var names []string
	for _, th := range f.Threads {
		if !strings.Contains(th.Name, "#") {
			names = append(names, th.Name)
		}
	}
	slices.Sort(names)
	if len(f.Threads) != 27 || len(names) != 2 || !strings.HasPrefix(names[0], "request-* (") ||
		!strings.HasPrefix(names[1], "virtual threads (") {
		t.Errorf("%d tracks, %q", len(f.Threads), names)
	}
}

// TestTIDs: each tid belongs to one track, even if the kernel gave it to two threads.
func TestTIDs(t *testing.T) {
	src := sources.CPU()
	for i := range src.Samples {
		src.Samples[i].Thread = profile.Thread{TID: 7, Name: fmt.Sprint(i)}
	}
	if f := checked(t, written(t, src, Options{})); len(f.Threads) != 7 {
		t.Errorf("%d threads", len(f.Threads))
	}
}

// TestError: Write returns the error of a source, and the error of a disk.
func TestError(t *testing.T) {
	if err := Write(io.Discard, sources.Broken{Fake: sources.Empty()}, Options{}); !errors.Is(err, sources.ErrBroken) {
		t.Error(err)
	}
	if err := Write(sources.FullDisk{}, sources.Many(1000), Options{}); !errors.Is(err, sources.ErrBroken) {
		t.Error(err)
	}
}

// BenchmarkWrite measures ns per sample of 40 frames.
func BenchmarkWrite(b *testing.B) {
	src := sources.Many(100_000)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if err := Write(io.Discard, src, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/sample")
}
