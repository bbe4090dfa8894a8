package output

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/profile"
)

func someSummary() profile.Summary {
	p := profile.New()
	p.Meta = profile.Meta{
		Version: "v1", Host: "h", PID: 12, MainClass: "shop.Main", JVM: "OpenJDK 17", Collector: "G1",
		Mode: "cpu", Start: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC), Duration: 10 * time.Second, Interval: 10 * time.Millisecond,
		Weight: profile.CPUTime,
	}
	p.Add("", everyKind(), 900)
	cut := everyKind()
	cut.Truncated = profile.StackCut
	p.Add("", cut, 2)
	p.Lose(profile.ThreadGone, 97)
	p.Lose(profile.Stale, 1)
	s := p.Summary()
	s.LeafLikely, s.LeafGuessed = 30, 60
	s.RateReached, s.Threads, s.OwnCPU = 99.5, 3, 120*time.Millisecond
	s.Times = profile.Times{Process: 9500 * time.Millisecond, Sampled: 9 * time.Second, NotSampled: 400 * time.Millisecond, Exited: 100 * time.Millisecond}
	s.Pauses = profile.Pauses{Count: 902, P50: 21345, P99: 80 * time.Microsecond, Max: time.Millisecond, Total: 25 * time.Millisecond}
	s.Asleep = 45
	s.Quality, s.Doubts = s.Judge()
	return s
}

// TestSummaryFields pins the names that scripts rely on.
func TestSummaryFields(t *testing.T) {
	s := someSummary()
	var b strings.Builder
	if err := WriteSummary(&b, &s); err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	const text = `{"recording":{"goprof":"v1","host":"h","pid":12,"main_class":"shop.Main","jvm":"OpenJDK 17","collector":"G1",
	  "mode":"cpu","start":"2026-11-21T06:00:00Z","duration_ns":10000000000,"interval_ns":10000000,"weight":"cpu"},
	  "rate_hz":100,"rate_reached_hz":99.5,"attempted":1000,"samples":902,"whole":900,"truncated":2,"lost":98,
	  "leaf_likely":30,"leaf_guessed":60,"truncated_by":{"stack longer than its copy":2},"lost_by":{"thread gone":97,"stale":1},"overflow":0,"threads":3,
	  "pauses":{"count":902,"p50_ns":21345,"p99_ns":80000,"max_ns":1000000,"total_ns":25000000},
	  "cpu_time":{"process_ns":9500000000,"sampled_ns":9000000000,"not_sampled_ns":400000000,"exited_ns":100000000},"own_cpu_ns":120000000,
	  "asleep":45,"quality":"fair","doubts":["9.8% of the looks are lost, whatever their threads did",
	  "5.0% of the samples may stand in a call that had not begun when the thread was chosen"]}`
	for in, to := range map[string]*map[string]any{b.String(): &got, text: &want} {
		if err := json.Unmarshal([]byte(in), to); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	back, err := ReadSummary(strings.NewReader(b.String()))
	if err != nil || cmp.Diff(s, *back) != "" {
		t.Errorf("read back: %v %s", err, cmp.Diff(s, *back))
	}
}

func TestSummaryText(t *testing.T) {
	s := someSummary()
	var b strings.Builder
	if err := SummaryText(&b, &s); err != nil {
		t.Fatal(err)
	}
	const want = `quality    FAIR: shares may be off by some percent
           9.8% of the looks are lost, whatever their threads did
           5.0% of the samples may stand in a call that had not begun when the thread was chosen
samples    902 of 1000 looks, 3 threads, in 10s
rate       99.5 Hz reached, 100 Hz asked
truncated  2 (0.2%): 2 stack longer than its copy
lost       98 (9.8%): 97 thread gone, 1 stale
asleep     45 samples (5.0%) of threads that entered a system call in the microseconds before they stopped
leaves     812 certain (90.0%), 30 likely (3.3%), 60 guessed (6.7%): which inlined method was running
cpu time   9.5s used: 94.7% sampled, 4.2% not sampled, 1.1% exited threads
pauses     p50 21.3µs, p99 80µs, max 1ms, 25ms together
goprof     120ms of CPU (1.2% of one)
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestSummaryOfAGap(t *testing.T) {
	for _, c := range []struct {
		what             string
		reached, lowered float64
		skipped          int64
		gap              time.Duration
		want             string
	}{
		{"goprof was stopped", 95, 0, 412, 4*time.Second + 123*time.Millisecond,
			"behind     412 ticks skipped and not made up for, the longest gap 4.12s: its CPU time is not sampled\n"},
		{"goprof had no CPU", 60, 0, 400, 80 * time.Millisecond,
			"behind     400 ticks skipped and not made up for, the longest gap 80ms\n"},
		{"a few ticks", 95, 0, 4, 80 * time.Millisecond, ""},
		{"a lowered rate that was kept", 48, 50, 4, 80 * time.Millisecond, ""},
		{"a long interval", 0.1, 0, 0, 12 * time.Second, ""},
	} {
		s := someSummary()
		s.RateReached, s.RateLowered, s.Skipped, s.Gap = c.reached, c.lowered, c.skipped, c.gap
		var b strings.Builder
		if err := SummaryText(&b, &s); err != nil {
			t.Fatal(err)
		}
		got := ""
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "behind") {
				got = line
			}
		}
		if got != c.want {
			t.Errorf("%s: %q", c.what, got)
		}
	}
}

func TestReadSummaryRefusesOtherThings(t *testing.T) {
	for _, in := range []string{"", "[]", "a;b 1", "{\"attempted\":\"x\"}"} {
		if s, err := ReadSummary(strings.NewReader(in)); err == nil {
			t.Errorf("%q gave %+v", in, s)
		}
	}
}

func TestSummaryPath(t *testing.T) {
	for in, want := range map[string]string{
		"out.collapsed": "out.summary.json", "d.d/out.1.collapsed": "d.d/out.1.summary.json", "plain": "plain.summary.json",
		"out.txt": "out.txt.summary.json", "out.html": "out.html.summary.json",
	} {
		if got := SummaryPath(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}
