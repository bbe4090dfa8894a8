package convert

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/output/format"
	"goprof/output/jfr"
	"goprof/output/recording"
	"goprof/output/redaction"
	"goprof/profile"
	"goprof/profile/redact"
)

// The kinds of the parts of several, besides CPU time.
var (
	allocKind = profile.EventKind{Name: profile.EventAlloc, Unit: profile.Bytes}
	lockKind  = profile.EventKind{Name: "lock", Unit: profile.WallTime}
	thrown    = profile.EventKind{Name: profile.EventExceptions}
)

// The threads of several. The part of CPU time gets a thread's Java name late, and another thread is renamed by the
// program. The part of waits gets no Java names. A tid is reused by a second thread after the first one has ended.
var (
	unnamed = profile.Thread{TID: 21, Name: "java"}
	named   = profile.Thread{TID: 21, Name: "java", JavaID: 1, JavaName: "main"}
	before  = profile.Thread{TID: 22, Name: "pool", JavaID: 7, JavaName: "before"}
	after   = profile.Thread{TID: 22, Name: "pool", JavaID: 7, JavaName: "after"}
	first   = profile.Thread{TID: 23, Name: "job", JavaID: 8, JavaName: "first"}
	second  = profile.Thread{TID: 23, Name: "job", JavaID: 9, JavaName: "second"}
)

// several is a recording of several parts, in chunks of a second: 60 samples of CPU time, 30 allocations of 1,000
// bytes, 20 waits of 3 looks and 5 ms each, and 10 exceptions.
func several(t *testing.T, chunk time.Duration) []byte {
	t.Helper()
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{ChunkLength: chunk})
	meta := profile.Meta{Version: "1", PID: 4711, MainClass: "shop.Main", Interval: time.Millisecond}
	part := func(name, mode string, weight profile.Weight) profile.Meta {
		m := meta
		if m.Part, m.Mode, m.Weight = name, mode, weight; weight == profile.Bytes {
			m.Interval = 0 // for events, an interval is an amount
		}
		return m
	}
	w.SetMeta(part("cpu", profile.ModeCPU, profile.Samples))
	w.AddPart(part("alloc,exceptions", "alloc", profile.Bytes))
	w.AddPart(part("lock", profile.ModeOffCPU, profile.WallTime))
	for i := range 60 {
		at := moment(time.Duration(i) * 50 * time.Millisecond)
		cpu := profile.Sample{At: at, Thread: []profile.Thread{unnamed, before, first}[i%3], Stack: stacks[i%3],
			CPU: 2 * time.Millisecond}
		if i >= 30 {
			cpu.Thread = []profile.Thread{named, after, second}[i%3]
		}
		list := []profile.Sample{cpu}
		if i%2 == 0 {
			list = append(list, profile.Sample{At: at, Thread: named, Event: &allocKind, Bytes: 1000, Count: 1, NoState: true,
				Stack: about("byte[]", profile.Inlined, stacks[0]), About: true})
		}
		if i%3 == 0 {
			list = append(list, profile.Sample{At: at, Thread: unnamed, Event: &lockKind, Wall: true, State: profile.Blocked,
				Count: 3, Span: 5 * time.Millisecond, Stack: stacks[1]})
		}
		if i%6 == 0 {
			list = append(list, profile.Sample{At: at, Thread: named, Event: &thrown, Count: 1, NoState: true,
				Stack: about("shop.SoldOut", profile.Native, stacks[0]), About: true})
		}
		for k := range list {
			if err := w.Sample(&list[k]); err != nil {
				t.Fatal(err)
			}
		}
	}
	account := profile.Summary{Samples: 60, Whole: 60, Attempted: 60, Parts: []profile.Summary{
		{Samples: 40, Whole: 40, Attempted: 40, Meta: profile.Meta{Part: "alloc,exceptions"}},
		{Samples: 60, Whole: 60, Attempted: 60, Meta: profile.Meta{Part: "lock"}}}}
	account.Meta.Part = "cpu"
	end := moment(3 * time.Second)
	if err := w.Account(end, &account); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(end); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sums returns the counts of each part of a recording.
func sums(t *testing.T, src recording.Source) map[string][4]int64 {
	t.Helper()
	list := make(map[string][4]int64)
	i := src.Info()
	err := src.Each(func(s *profile.Sample) error {
		name := profile.ModeCPU
		if i.All {
			name = i.Parts[i.Part(s)].Name
		}
		n := list[name]
		list[name] = [4]int64{n[0] + s.Looks(), n[1] + int64(s.CPU), n[2] + int64(s.Span), n[3] + s.Bytes}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var sumsOfSeveral = map[string][4]int64{"cpu": {60, 60 * 2e6}, "alloc": {30, 0, 0, 30_000}, "lock": {60, 0, 20 * 5e6},
	"exceptions": {10}}

// TestAllPartsAreKept: JFR and pprof hold all parts of a recording, with the counts of each, and goprof can read them
// again. A part that is chosen by name is the same before and after.
func TestAllPartsAreKept(t *testing.T) {
	data := several(t, time.Second)
	all := recording.Options{All: true}
	if d := cmp.Diff(sumsOfSeveral, sums(t, open(t, data, all))); d != "" {
		t.Fatal(d)
	}
	again := converted(t, open(t, data, all), format.JFR, false)
	for name, file := range map[string][]byte{
		"jfr": again, "jfr of jfr": converted(t, open(t, again, all), format.JFR, false),
		"pprof": converted(t, open(t, data, all), format.PProf, false),
	} {
		src := open(t, file, all)
		if d := cmp.Diff(sumsOfSeveral, sums(t, src)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if i := src.Info(); i.Parts[0].Name != "cpu" || len(i.LeftOut()) > 0 {
			t.Errorf("%s: %+v", name, i.Parts)
		}
	}
	for event := range sumsOfSeveral {
		o := recording.Options{Event: event}
		want := converted(t, open(t, data, o), format.Collapsed, true)
		if got := converted(t, open(t, again, o), format.Collapsed, true); !bytes.Equal(got, want) {
			t.Errorf("--event %s:\n%s\nwant\n%s", event, got, want)
		}
	}
	if s := open(t, again, recording.Options{Event: "lock"}).Info().Summary; s == nil || s.Samples != 60 {
		t.Errorf("the account of lock is %+v", s)
	}
	types, values := valuesOf(t, converted(t, open(t, data, all), format.PProf, false))
	want := "[samples/count cpu/nanoseconds alloc_samples/count alloc_space/bytes exceptions/count lock_samples/count " +
		"delay/nanoseconds] [60 120000000 30 30000 10 60 100000000]"
	if got := fmt.Sprint(types, values); got != want {
		t.Errorf("pprof has %s", got)
	}
}

// TestPartsThatAreLeftOut: if one part is read, the other parts are named, with their samples.
func TestPartsThatAreLeftOut(t *testing.T) {
	jfr := several(t, time.Second)
	pprof := converted(t, open(t, jfr, recording.Options{All: true}), format.PProf, false)
	for event, want := range map[string]string{
		"": "alloc 30, exceptions 10, lock 60", "lock": "cpu 60, alloc 30, exceptions 10",
	} {
		for name, data := range map[string][]byte{"jfr": jfr, "pprof": pprof} {
			i := open(t, data, recording.Options{Event: event}).Info()
			var list []string
			for _, p := range i.LeftOut() {
				list = append(list, fmt.Sprintf("%s %d", p.Name, p.Samples))
			}
			if got := strings.Join(list, ", "); got != want {
				t.Errorf("--event %q of %s leaves out %q, not %q", event, name, got, want)
			}
		}
	}
}

// names returns the threads of a speedscope or Firefox file, with repetitions.
func names(t *testing.T, data []byte, to format.Format) (list []string) {
	t.Helper()
	if to == format.Firefox {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	var file struct {
		Profiles []struct {
			Name     string
			EndValue int64
			Unit     string
		}
		Threads []struct {
			Name, PID string
			Samples   struct {
				Weight     []int64
				WeightType string
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, p := range file.Profiles {
		list = append(list, fmt.Sprintf("%s: %d %s", p.Name, p.EndValue, p.Unit))
	}
	for _, th := range file.Threads {
		n := int64(0)
		for _, w := range th.Samples.Weight {
			n += w
		}
		list = append(list, fmt.Sprintf("%s of %s: %d %s", th.Name, th.PID, n, th.Samples.WeightType))
	}
	slices.Sort(list)
	return list
}

// TestOneThreadIsOneRow: in each part a thread is one row with its last name, whatever names its samples have.
func TestOneThreadIsOneRow(t *testing.T) {
	for to, want := range map[format.Format][]string{
		format.Speedscope: {"after tid=22 (before: before), cpu: 40000000 nanoseconds",
			"first tid=23, cpu: 20000000 nanoseconds",
			"main tid=21, alloc: 30000 bytes", "main tid=21, cpu: 40000000 nanoseconds", "main tid=21, exceptions: 10 none",
			"main tid=21, lock: 100000000 nanoseconds", "second tid=23, cpu: 20000000 nanoseconds"},
		format.Firefox: {"after of 4711: 20 samples", "first of 4711: 10 samples", "main of 4711-alloc: 30000 bytes",
			"main of 4711-exceptions: 10 samples", "main of 4711-lock: 60 samples", "main of 4711: 20 samples",
			"second of 4711: 10 samples"},
	} {
		for _, chunk := range []time.Duration{time.Second, time.Minute} {
			src := open(t, several(t, chunk), recording.Options{All: true})
			if d := cmp.Diff(want, names(t, converted(t, src, to, false), to)); d != "" {
				t.Errorf("%v, chunks of %v: %s", to, chunk, d)
			}
		}
	}
	text := string(converted(t, open(t, several(t, time.Second), recording.Options{Event: "cpu"}), format.Collapsed, true))
	for _, thread := range []string{"[main tid=21]", "[after tid=22]", "[first tid=23]", "[second tid=23]"} {
		if !strings.Contains(text, thread) {
			t.Errorf("no %s in %s", thread, text)
		}
	}
	if strings.Contains(text, "before") || strings.Contains(text, "[tid=21]") {
		t.Errorf("a thread is there twice: %s", text)
	}
}

// TestRedactedParts: redaction of names keeps all parts.
func TestRedactedParts(t *testing.T) {
	by := redact.New(redact.Default(), []byte("the key of this test"))
	src := redaction.Of(open(t, several(t, time.Second), recording.Options{All: true}), by)
	again := open(t, converted(t, src, format.JFR, false), recording.Options{All: true})
	if d := cmp.Diff(sumsOfSeveral, sums(t, again)); d != "" {
		t.Error(d)
	}
}

// TestTooMuchTogether: if counts overflow, every format returns an error and writes no empty file.
func TestTooMuchTogether(t *testing.T) {
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{})
	w.SetMeta(profile.Meta{Mode: profile.ModeWall, Interval: time.Millisecond})
	for i := range 3 {
		if err := w.Sample(&profile.Sample{At: moment(time.Duration(i)), Thread: threads[0], Stack: stacks[0], Wall: true,
			Span: 1 << 62}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(moment(time.Second)); err != nil {
		t.Fatal(err)
	}
	src := open(t, b.Bytes(), recording.Options{})
	for _, f := range format.All() {
		var to bytes.Buffer
		if n, err := Write(&to, f, src, Options{}); err == nil || !recording.IsBad(err) {
			t.Errorf("%v: %d samples, %v", f, n, err)
		}
	}
}
