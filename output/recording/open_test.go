package recording

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/output"
	"goprof/output/jfr"
	"goprof/output/pprof"
	"goprof/profile"
)

const start = int64(1_790_000_000_000_000_000)

func moment(d time.Duration) profile.Instant {
	return profile.Instant{Wall: start + int64(d), Ticks: int64(5*time.Minute + d)}
}

var (
	mainFn = &profile.Func{Name: "shop.Main.main", File: "Main.java"}
	sellFn = &profile.Func{Name: "shop.Main.sell", File: "Main.java"}
	gcFn   = &profile.Func{Name: "G1ParTask::work(unsigned int)", Module: "/jdk/lib/server/libjvm.so"}
	worker = profile.Thread{TID: 12, Name: "worker", JavaID: 30, JavaName: "worker-1"}
	gc     = profile.Thread{TID: 13, Name: "GC Thread#0"}
)

func java(kind profile.Kind, fn *profile.Func, line int32) profile.Frame {
	return profile.Frame{Func: fn, Kind: kind, Line: line, BCI: 3}
}

// cpuSamples are ten seconds of two threads: a sample of worker every 100 ms, and one of the collector's thread every
// second.
func cpuSamples() (all []profile.Sample) {
	sell := &profile.Stack{Frames: []profile.Frame{java(profile.Inlined, sellFn, 7), java(profile.C2, mainFn, 3)}}
	work := &profile.Stack{Frames: []profile.Frame{{Func: gcFn, Kind: profile.Native, BCI: -1}},
		Truncated: profile.NoUnwindInfo}
	for i := range 100 {
		at := moment(time.Duration(i) * 100 * time.Millisecond)
		all = append(all, profile.Sample{At: at, Thread: worker, Stack: sell, CPU: 90 * time.Millisecond})
		if i%10 == 0 {
			all = append(all, profile.Sample{At: at, Thread: gc, Stack: work, CPU: 5 * time.Millisecond})
		}
	}
	return all
}

// jfrOf returns samples as a JFR file by goprof.
func jfrOf(t testing.TB, mode string, weight profile.Weight, samples []profile.Sample) []byte {
	t.Helper()
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{ChunkLength: 3 * time.Second})
	w.SetMeta(profile.Meta{Version: "1", Host: "host", PID: 4711, MainClass: "shop.Main", JVM: "25", Mode: mode,
		Engine: "ptrace", Interval: 100 * time.Millisecond, Weight: weight})
	for i := range samples {
		if err := w.Sample(&samples[i]); err != nil {
			t.Fatal(err)
		}
	}
	end := moment(10 * time.Second)
	err := w.Account(end, &profile.Summary{Attempted: 112, Whole: 100, Samples: 110, Truncated: 10, Lost: 2,
		TruncatedBy: map[string]int64{profile.NoUnwindInfo.String(): 10}, LostBy: map[string]int64{profile.Stale.String(): 2},
		Times: profile.Times{Process: 10 * time.Second, Sampled: 9 * time.Second, NotSampled: time.Second},
		Notes: []profile.Note{{Name: "odd", Text: "it is odd"}}})
	if err == nil {
		err = w.Close(end)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pprofOf(t testing.TB, samples []profile.Sample) []byte {
	t.Helper()
	b := pprof.NewBuilder(pprof.Options{States: true})
	for _, s := range samples {
		b.Add(&s)
	}
	var file bytes.Buffer
	meta := profile.Meta{Mode: "cpu", Weight: profile.Samples, MainClass: "shop.Main", PID: 4711}
	if err := b.Write(&file, meta); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

const collapsedText = "[worker-1 tid=12];shop.Main.main_[j];shop.Main.sell_[i] 100\n" +
	"[GC Thread#0 tid=13];[truncated: no unwind info];G1ParTask::work(unsigned int) 10\n"

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func save(t testing.TB, name string, data []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// lines returns the counts of a source, by thread and stack.
func lines(t testing.TB, src Source) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	if err := src.Each(func(s *profile.Sample) error {
		line := fmt.Sprintf("%d %s", s.Thread.TID, s.State)
		if s.Stack.Truncated != profile.Whole {
			line += " cut"
		}
		for _, f := range s.Stack.Frames {
			line += " " + f.Func.Name
		}
		all[line] += s.Looks()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestOpen: each format gives the same samples, under any file name and through a pipe.
func TestOpen(t *testing.T) {
	samples := cpuSamples()
	flight := jfrOf(t, profile.ModeCPU, profile.Samples, samples)
	proto := pprofOf(t, samples)
	plain, err := gzip.NewReader(bytes.NewReader(proto))
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data   []byte
		format string
	}{
		"jfr": {flight, "jfr"}, "packed jfr": {zipped(t, flight), "jfr"},
		"two jfr": {append(bytes.Clone(flight), flight...), "jfr"},
		"pprof":   {proto, "pprof"}, "plain pprof": {unzipped, "pprof"},
		"collapsed": {[]byte(collapsedText), "collapsed"}, "packed collapsed": {zipped(t, []byte(collapsedText)),
			"collapsed"},
	} {
		t.Run(name, func(t *testing.T) {
			times := int64(1)
			if name == "two jfr" {
				times = 2
			}
			want := map[string]int64{"12 running shop.Main.sell shop.Main.main": 100 * times,
				"13 running cut G1ParTask::work(unsigned int)": 10 * times}
			path := save(t, "odd.name", c.data)
			for _, from := range []string{path, Stdin} {
				f, err := Open(from, Options{Stdin: bytes.NewReader(c.data)})
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				i := f.Info()
				if i.Format != c.format || i.Timed != (c.format == "jfr") || !i.Threads || i.Meta.Weight != profile.Samples {
					t.Errorf("%+v", i)
				}
				for range 2 {
					if got := lines(t, f); fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%s: %v, want %v", from, got, want)
					}
				}
				if c.format != "collapsed" && (i.Meta.PID != 4711 || i.Meta.MainClass != "shop.Main" || i.Meta.Mode != "cpu") {
					t.Errorf("%+v", i.Meta)
				}
			}
		})
	}
}

// TestSummary: a JFR file has its account.
func TestSummary(t *testing.T) {
	f, err := Open(save(t, "x.jfr", jfrOf(t, profile.ModeCPU, profile.CPUTime, cpuSamples())), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	i := f.Info()
	s := i.Summary
	if s == nil || s.Attempted != 112 || s.Samples != 110 || s.LostBy["stale"] != 2 || len(s.Notes) != 1 ||
		s.Times.NotSampled != time.Second || s.Meta.Host != "host" || i.Event != executionSample+", "+nativeSample {
		t.Errorf("%+v %+v", i, s)
	}
	if i.Meta.Weight != profile.CPUTime || !i.Meta.Start.Equal(time.Unix(0, start)) || i.Meta.Duration != 10*time.Second {
		t.Errorf("%+v", i.Meta)
	}
}

// TestCutOff: if the last chunk of a recording was not finished, the recording is read up to that chunk, with a note.
func TestCutOff(t *testing.T) {
	whole := jfrOf(t, profile.ModeCPU, profile.Samples, cpuSamples())
	f, err := Open(save(t, "x.jfr", whole[:len(whole)-10]), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := len(f.Info().Notes); n != 1 || !strings.Contains(f.Info().Notes[0], "end is missing") {
		t.Errorf("%q", f.Info().Notes)
	}
	if got := lines(t, f)["12 running shop.Main.sell shop.Main.main"]; got < 50 || got >= 100 {
		t.Errorf("%d samples", got)
	}
	if _, err := Open(save(t, "x.jfr", whole[:500]), Options{}); !IsBad(err) {
		t.Errorf("the beginning of a chunk: %v", err)
	}
}

// TestNoEnd: a file of whole chunks without its end has a note. A file that was ended without an account, such as a
// filtered one, has none.
func TestNoEnd(t *testing.T) {
	for _, ended := range []bool{false, true} {
		var b bytes.Buffer
		w := jfr.NewWriter(&b, jfr.Options{})
		w.SetMeta(profile.Meta{Version: "1", Mode: profile.ModeCPU})
		s := cpuSamples()[0]
		end := w.Flush
		if ended {
			end = w.Close
		}
		if err := cmp.Or(w.Sample(&s), end(moment(time.Second))); err != nil {
			t.Fatal(err)
		}
		f, err := Open(save(t, "x.jfr", b.Bytes()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if notes := strings.Join(f.Info().Notes, "; "); strings.Contains(notes, "was not ended") == ended {
			t.Errorf("ended: %v, notes: %q", ended, notes)
		}
	}
}

// TestChoice: if the chosen event or weight does not exist, the error lists those that exist.
func TestChoice(t *testing.T) {
	flight := save(t, "x.jfr", jfrOf(t, profile.ModeCPU, profile.Samples, cpuSamples()))
	proto := save(t, "x.pprof", pprofOf(t, cpuSamples()))
	text := save(t, "x.collapsed", []byte(collapsedText))
	bytes, cpu := profile.Bytes, profile.CPUTime
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{flight, Options{Event: "wall"}, "there are no events of wall in it; events with stacks in it: " +
			"jdk.ExecutionSample (100), jdk.NativeMethodSample (10)"},
		{flight, Options{Event: "cpu,socketread"}, "there are no events of socketread"},
		{flight, Options{Weight: &bytes}, "it does not say how many bytes"},
		{proto, Options{Event: "alloc_space"}, `it has no value "alloc_space"; it has samples/count, cpu/nanoseconds`},
		{text, Options{Weight: &cpu}, "it does not say how much CPU time"},
	} {
		if _, err := Open(c.name, c.o); err == nil || !IsBad(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
	f, err := Open(flight, Options{Event: "nativemethodsample"})
	if err != nil || len(lines(t, f)) != 1 || f.Info().Event != nativeSample {
		t.Errorf("%v", err)
	}
	f, err = Open(proto, Options{Weight: &cpu})
	if err != nil || f.Info().Meta.Weight != profile.CPUTime {
		t.Errorf("%v", err)
	}
}

// FuzzOpen: no file does harm, whatever its contents.
func FuzzOpen(f *testing.F) {
	samples := cpuSamples()[:20]
	flight, proto := jfrOf(f, profile.ModeCPU, profile.Samples, samples), pprofOf(f, samples)
	for _, seed := range [][]byte{flight, zipped(f, flight), proto, []byte(collapsedText),
		zipped(f, []byte(collapsedText)),
		jfrOf(f, profile.ModeWall, profile.WallTime, samples), {0x0a, 4, 8, 1, 16, 2}, nil} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open(Stdin, Options{Stdin: bytes.NewReader(data)})
		if err != nil {
			return
		}
		defer file.Close()
		err = file.Each(func(s *profile.Sample) error {
			if len(s.Stack.Frames) == 0 {
				t.Error("a sample without any frame")
			}
			return nil
		})
		if err != nil && !IsBad(err) {
			t.Errorf("%T %v", err, err)
		}
		if err := file.Marks(func(Mark) error { return nil }); err != nil && !IsBad(err) {
			t.Errorf("%T %v", err, err)
		}
	})
}

// TestNoRegularSummary: a file that the user has not named is opened only if it is regular. The reader does not wait
// for a pipe.
func TestNoRegularSummary(t *testing.T) {
	secret := save(t, "other.json", []byte("secret"))
	for name, put := range map[string]func(path string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":   func(path string) error { return os.Symlink(secret, path) },
	} {
		file := save(t, "x.collapsed", []byte("a;b 3\n"))
		if err := put(output.SummaryPath(file)); err != nil {
			t.Fatal(err)
		}
		f, err := Open(file, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if notes := f.Info().Notes; len(notes) != 1 || !strings.Contains(notes[0], "not used: it is ") {
			t.Errorf("%s: %q", name, notes)
		}
	}
}
