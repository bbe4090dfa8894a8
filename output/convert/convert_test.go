package convert

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/output/format"
	"goprof/output/jfr"
	"goprof/output/recording"
	"goprof/profile"
)

const start = int64(1_790_000_000_000_000_000)

func moment(d time.Duration) profile.Instant {
	return profile.Instant{Wall: start + int64(d), Ticks: int64(5*time.Minute + d)}
}

var threads = []profile.Thread{
	{TID: 12, Name: "worker", JavaID: 30, JavaName: "worker-1"},
	{TID: 13, Name: "GC Thread#0"},
	{TID: 14, Name: "carrier", JavaID: 41, JavaName: "request;\x1b<7>", Virtual: true},
	{TID: 14, Name: "carrier", JavaID: 42, Virtual: true},
}

func frame(kind profile.Kind, name string) profile.Frame {
	f := profile.Frame{Func: &profile.Func{Name: name}, Kind: kind, BCI: -1}
	if kind.Java() {
		f.Func.File, f.Line, f.BCI = "Shop.java", 7, 3
	} else if kind == profile.Native {
		f.Func.Module = "/jdk/lib/server/libjvm.so"
	}
	return f
}

// stacks have frames of all kinds, and names that could do harm.
var stacks = []*profile.Stack{
	{Frames: []profile.Frame{frame(profile.Inlined, "shop.Price.round"), frame(profile.C2, "shop.Price.of"),
		frame(profile.Interpreted, "shop.Main.main")}},
	{Frames: []profile.Frame{frame(profile.C1, "shop.Main.lambda$main$0;\n"),
		frame(profile.Interpreted, "shop.Main.main")}},
	{Frames: []profile.Frame{frame(profile.NativeMethod, "java.lang.System.nanoTime"),
		frame(profile.C2, "</script>.<init>")}},
	{Frames: []profile.Frame{frame(profile.Native, "G1ParTask::work(unsigned int)")}, Truncated: profile.NoUnwindInfo},
	{Frames: []profile.Frame{frame(profile.Stub, "StubRoutines (1)"),
		frame(profile.Gap, "[no unwind info: libfoo.so]"), frame(profile.C2, "shop.Main.main")}},
}

// flight is a goprof recording of n samples, one each millisecond.
func flight(t testing.TB, n int, wall bool) []byte {
	t.Helper()
	mode, weight := profile.ModeCPU, profile.CPUTime
	if wall {
		mode, weight = profile.ModeWall, profile.Samples
	}
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{})
	w.SetMeta(profile.Meta{Version: "1", Host: "host", PID: 4711, MainClass: "shop.Main", JVM: "25", Mode: mode,
		Engine: "ptrace", Interval: time.Millisecond, Weight: weight})
	for i := range n {
		s := profile.Sample{At: moment(time.Duration(i) * time.Millisecond), Thread: threads[i%len(threads)],
			Stack: stacks[i*7%len(stacks)], CPU: time.Millisecond, Link: linkOf(i)}
		if wall {
			s.Wall, s.Span, s.State = true, time.Millisecond, profile.State(i%3)
		}
		if err := w.Sample(&s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(moment(time.Duration(n) * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t testing.TB, data []byte, o recording.Options) *recording.File {
	t.Helper()
	o.Stdin = bytes.NewReader(data)
	f, err := recording.Open(recording.Stdin, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func converted(t testing.TB, src recording.Source, to format.Format, threads bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := Write(&b, to, src, Options{Sum: recording.SumOptions{Threads: threads}}); err != nil {
		t.Fatalf("to %v: %v", to, err)
	}
	return b.Bytes()
}

// linkOf returns the span of a sample: every third sample has one of five spans.
func linkOf(i int) (l profile.Link) {
	if i%3 == 0 {
		l.Trace[3], l.Span[7] = 0xab, byte(i%5+1)
	}
	return l
}

// TestLinks: JFR and pprof keep each sample's span.
func TestLinks(t *testing.T) {
	for _, wall := range []bool{false, true} {
		for _, way := range ways {
			want, got := map[profile.Link]int64{}, map[profile.Link]int64{}
			for i := range 1000 {
				want[linkOf(i)]++
			}
			data := flight(t, 1000, wall)
			for _, f := range way {
				data = converted(t, open(t, data, recording.Options{}), f, false)
			}
			if err := open(t, data, recording.Options{}).Each(func(s *profile.Sample) error {
				got[s.Link] += s.Looks()
				return nil
			}); err != nil || !maps.Equal(got, want) {
				t.Errorf("wall %v, by %v: %v, %v", wall, way, got, err)
			}
		}
	}
}

// TestLinksOfEvents: JFR keeps the spans of samples of events, and of wakers, whether the leaf of a sample is known or
// not.
func TestLinksOfEvents(t *testing.T) {
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{})
	want, got := map[profile.Link]int64{}, map[profile.Link]int64{}
	for i := range 300 {
		s := profile.Sample{At: moment(time.Duration(i) * time.Millisecond), Thread: threads[i%len(threads)],
			Stack: stacks[i*7%len(stacks)], Link: linkOf(i), NoState: true, About: i%2 == 0,
			Event: &profile.EventKind{Name: profile.EventExceptions, Unit: profile.Samples}}
		if i%5 == 0 {
			s.Event = &profile.EventKind{Name: profile.EventIO, Unit: profile.WallTime}
			s.Wall, s.Span, s.IO = true, time.Millisecond, &profile.IOCall{Took: time.Millisecond}
		}
		if i%7 == 0 {
			s.Event, s.IO, s.About, s.Wall, s.Span, s.WakerLink = nil, nil, false, true, time.Millisecond, linkOf(i/2)
		}
		want[s.WakerLink]++
		if want[s.Link]++; w.Sample(&s) != nil {
			t.Fatal("not written")
		}
	}
	if err := w.Close(moment(time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"jdk.JavaExceptionThrow", "goprof.IOCall", "wall"} {
		err := open(t, b.Bytes(), recording.Options{Event: event}).Each(func(s *profile.Sample) error {
			got[s.Link] += s.Looks()
			got[s.WakerLink] += s.Looks()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// TestRoundTrips: a recording that is converted to one or two other formats and back has the same stacks, threads and
// counts.
func TestRoundTrips(t *testing.T) {
	for _, wall := range []bool{false, true} {
		data := flight(t, 1000, wall)
		weights := []profile.Weight{profile.Samples, profile.CPUTime}
		if wall {
			weights[1] = profile.WallTime
		}
		for _, w := range weights {
			o := recording.Options{Weight: &w}
			for _, split := range []bool{false, true} {
				want := string(converted(t, open(t, data, o), format.Collapsed, split))
				for _, way := range ways {
					through := data
					for _, f := range way {
						through = converted(t, open(t, through, o), f, false)
					}
					got := string(converted(t, open(t, through, o), format.Collapsed, split))
					if plain(got, way) != plain(want, way) {
						t.Errorf("wall %v, %v, threads %v, by %v:\n%s\nwant\n%s", wall, w, split, way, got, want)
					}
				}
			}
		}
	}
}

// ways are the formats that a recording goes through.
var ways = [][]format.Format{{format.JFR}, {format.PProf}, {format.JFR, format.PProf}, {format.JFR, format.JFR},
	{format.PProf, format.PProf}}

// plain removes the facts from a collapsed file that pprof cannot hold: how a method was compiled, and the numbers of
// virtual threads with names.
func plain(text string, way []format.Format) string {
	if slices.Contains(way, format.PProf) {
		for _, s := range []string{"_[0]", "_[1]", "_[i]"} {
			text = strings.ReplaceAll(text, s, "_[j]")
		}
		text = strings.ReplaceAll(text, "virtual #41", "virtual #?")
	}
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestEverywhere: each input can be written in each format. Malicious names break none.
func TestEverywhere(t *testing.T) {
	data := flight(t, 500, false)
	proto := converted(t, open(t, data, recording.Options{}), format.PProf, false)
	text := converted(t, open(t, data, recording.Options{}), format.Collapsed, true)
	for name, in := range map[string][]byte{"jfr": data, "pprof": proto, "collapsed": text} {
		for _, f := range format.All() {
			var b bytes.Buffer
			n, err := Write(&b, f, open(t, in, recording.Options{}), Options{})
			if (f == format.JFR || f == format.Firefox) && name != "jfr" {
				if source := new(SourceError); !errors.As(err, &source) || !recording.IsBad(err) {
					t.Errorf("%s to %v: %v", name, f, err)
				}
				continue
			}
			if err != nil || n == 0 || b.Len() == 0 {
				t.Errorf("%s to %v: %d samples, %d bytes, %v", name, f, n, b.Len(), err)
			}
			if bytes.Contains(b.Bytes(), []byte("\x1b<7>")) && f != format.JFR {
				t.Errorf("%s to %v: a control character", name, f)
			}
		}
	}
}

// TestTimes: a recording that was converted to JFR keeps its own times and those of its samples.
func TestTimes(t *testing.T) {
	data := flight(t, 3000, false)
	filter := recording.Filter{From: time.Second, To: 2 * time.Second}
	part, err := filter.Of(open(t, data, recording.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, converted(t, part, format.JFR, false), recording.Options{})
	m := again.Info().Meta
	got := m.Start.UnixNano() - start
	if got != int64(time.Second) || m.Duration != time.Second || m.Weight != profile.CPUTime {
		t.Errorf("it begins after %v, lasts %v, and counts %v", time.Duration(got), m.Duration, m.Weight)
	}
	next := moment(time.Second)
	if err := again.Each(func(s *profile.Sample) error {
		if s.At != next || s.CPU != time.Millisecond {
			return fmt.Errorf("a sample of %v at %v, want %v", s.CPU, s.At, next)
		}
		next.Wall, next.Ticks = next.Wall+int64(time.Millisecond), next.Ticks+int64(time.Millisecond)
		return nil
	}); err != nil || next != moment(2*time.Second) {
		t.Errorf("%v until %v", err, next)
	}
}

// TestErrors: an error of the writer is not reported as one of the recording.
func TestErrors(t *testing.T) {
	data := flight(t, 5000, false)
	for _, f := range format.All() {
		source := new(SourceError)
		_, err := Write(broken{}, f, open(t, data, recording.Options{}), Options{})
		if !errors.Is(err, errBroken) || errors.As(err, &source) {
			t.Errorf("%v: %v", f, err)
		}
		if _, err := Write(io.Discard, f, open(t, data, recording.Options{Event: "cpu"}), Options{}); err != nil {
			t.Errorf("%v: %v", f, err)
		}
	}
}

var errBroken = errors.New("no space left")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// BenchmarkConvert converts a million samples of 5,000 different stacks of 60 frames, including the opening of the
// file. cpu-s/million is the user and system time of a million samples. x-reading is the ratio to the time of reading
// alone in the same run: on a busy machine the time varies, but the ratio hardly does.
func BenchmarkConvert(b *testing.B) { benchmarkConvert(b, million(b, 5000)) }

// BenchmarkConvertDifferent is BenchmarkConvert with a different stack for each sample.
func BenchmarkConvertDifferent(b *testing.B) { benchmarkConvert(b, million(b, samples)) }

// BenchmarkConvertRecorded is BenchmarkConvert with a recording by goprof, repeated until it has a million samples.
// scripts/convert.sh records one.
func BenchmarkConvertRecorded(b *testing.B) {
	name := os.Getenv("GOPROF_CONVERT")
	if name == "" {
		b.Skip("GOPROF_CONVERT names no recording: see scripts/convert.sh")
	}
	data, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	benchmarkConvert(b, again(b, data))
}

// again repeats a recording until it has a million samples. Each repetition begins at the end of the last one.
func again(b *testing.B, data []byte) (all []byte) {
	n, from, to := int64(0), int64(math.MaxInt64), int64(0)
	f := open(b, data, recording.Options{})
	if err := f.Each(func(s *profile.Sample) error {
		n += s.Looks()
		from, to = min(from, s.At.Wall), max(to, s.At.Wall)
		return nil
	}); err != nil || n == 0 {
		b.Fatal(n, err)
	}
	for times := range (samples + n - 1) / n {
		copied := slices.Clone(data)
		for at := uint64(0); at < uint64(len(copied)); {
			// A chunk's header holds its size and the beginning of its wall clock (jdk.jfr.internal.consumer.ChunkHeader).
			size, begins := copied[at+8:], copied[at+32:]
			binary.BigEndian.PutUint64(begins, binary.BigEndian.Uint64(begins)+uint64(times*(to-from+1)))
			at += binary.BigEndian.Uint64(size)
		}
		all = append(all, copied...)
	}
	return all
}

func benchmarkConvert(b *testing.B, data []byte) {
	name := filepath.Join(b.TempDir(), "million.jfr")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		b.Fatal(err)
	}
	reading, all := time.Duration(0), int64(0)
	measure := func(to string, write func(*recording.File) (int64, error)) {
		b.Run(to, func(b *testing.B) {
			runtime.GC()
			before := cpuTime()
			for b.Loop() {
				file, err := recording.Open(name, recording.Options{})
				if err != nil {
					b.Fatal(err)
				}
				n, err := write(file)
				if err != nil || n < samples || all != 0 && n != all {
					b.Fatal(n, err)
				}
				all = n
				file.Close()
			}
			took := (cpuTime() - before) / time.Duration(b.N)
			if reading == 0 {
				reading = took
			}
			b.ReportMetric(took.Seconds()/float64(all)*1e6, "cpu-s/million")
			b.ReportMetric(took.Seconds()/reading.Seconds(), "x-reading")
		})
	}
	measure("reading", func(f *recording.File) (n int64, err error) {
		err = f.Visit(recording.LaterStacks, func(s *profile.Sample) error { n += s.Looks(); return nil })
		return n, err
	})
	for _, f := range format.All() {
		measure(f.String(), func(file *recording.File) (int64, error) { return Write(io.Discard, f, file, Options{}) })
	}
}

const samples = 1_000_000

func million(t testing.TB, stacks int) []byte {
	t.Helper()
	var fns []*profile.Func
	for i := range 2000 {
		fns = append(fns, &profile.Func{Name: fmt.Sprintf("com.example.shop.service.Part%d.work", i), File: "Part.java"})
	}
	many := make([]*profile.Stack, stacks)
	for i := range many {
		many[i] = &profile.Stack{}
		for d := range 60 {
			// Many stacks share their callers, as in real programs.
			at := cmp.Or((i>>max(0, d-20)*31+d)%len(fns), 1)
			many[i].Frames = append(many[i].Frames, profile.Frame{Func: fns[at], Kind: profile.C2, Line: int32(d), BCI: 1})
		}
	}
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{})
	w.SetMeta(profile.Meta{Mode: "cpu", Interval: time.Millisecond})
	for i := range samples {
		who := profile.Thread{TID: 100 + i%64, JavaName: fmt.Sprintf("worker-%d", i%64), JavaID: int64(i%64 + 1)}
		if err := w.Sample(&profile.Sample{At: moment(time.Duration(i) * time.Millisecond), Thread: who,
			Stack: many[i*2654435761%len(many)], CPU: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(moment(samples * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
