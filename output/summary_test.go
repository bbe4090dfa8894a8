package output

import (
	"encoding/json"
	"regexp"
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
		Mode: "cpu", Start: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC),
		Duration: 10 * time.Second, Interval: 10 * time.Millisecond,
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
	s.Times = profile.Times{Process: 9500 * time.Millisecond, Sampled: 9 * time.Second,
		NotSampled: 400 * time.Millisecond, Exited: 100 * time.Millisecond}
	s.Pauses = profile.Pauses{Count: 902, P50: 21345, P99: 80 * time.Microsecond, Max: time.Millisecond,
		Total: 25 * time.Millisecond}
	s.Asleep = 45
	s.SetQuality()
	s.Hottest = []profile.Part{{Name: "com.shop.Cart.total", Share: 0.31}}
	return s
}

// TestSummaryFields fixes the names on which scripts rely.
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
	  "asleep":45,"quality":"fair","doubts":["9.8 % of the samples are lost: the threads ended first",
	  "5.0 % of the samples may stand in a call that had not begun when the thread was chosen"],
	  "cures":["--engine perf, which stops no thread","--engine perf, which stops no thread"],
	  "hottest":[{"name":"com.shop.Cart.total","share":0.31}]}`
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

func textOf(t *testing.T, s *profile.Summary) string {
	t.Helper()
	var b strings.Builder
	if err := SummaryText(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSummaryText: accounts as users see them.
func TestSummaryText(t *testing.T) {
	fair, good, empty := someSummary(), goodSummary(), profile.New().Summary()
	empty.Meta.Duration = 2 * time.Second
	lost := empty
	lost.Attempted, lost.Lost, lost.LostBy = 12, 12, map[string]int64{"stale": 11, "thread gone": 1}
	held := empty
	held.Attempted, held.Lost, held.LostBy = 2, 2, map[string]int64{"stale": 2}
	held.Hindered = &profile.Hindered{Over: 2, Why: "no CPU", Cure: "perf"}
	held.Pauses = profile.Pauses{Count: 2, Bound: 100 * time.Millisecond, Max: 250 * time.Millisecond,
		Total: 500 * time.Millisecond}
	hostile := goodSummary()
	hostile.Hottest = []profile.Part{{Name: "a\x1b[2J.B.c;d", Share: 0.5}, {Name: "x.B.c", Share: 0.3},
		{Name: "y.B.c", Share: 0.1}}
	hostile.Notes = []profile.Note{{Name: "n", Text: "lib\nx is gone", Remedy: "sudo\x1b[2J"}}
	wall := wallSummary()
	late := goodSummary()
	late.RateReached, late.Skipped, late.Gap, late.Waiting = 60, 4000, 1500*time.Millisecond, 5000
	perf := goodSummary()
	perf.Meta.Engine, perf.Pauses = profile.EnginePerf, profile.Pauses{}
	pauses := goodSummary()
	pauses.Pauses.Max, pauses.LeafGuessed, pauses.Chosen = 40*time.Millisecond, 1665, true
	for _, c := range []struct {
		what string
		s    *profile.Summary
		want string
	}{
		{"good", &good, `CPU        used 33.5 s in 20 s (1.7 CPUs), 10 threads
Profile    GOOD: 3,330 samples cover 99.7 % of it; none lost or cut
Hottest    31 % Cart.total   14 % G1 collector   1 % kernel: write
Cost       threads held 0.21 s in all, longest 0.5 ms; goprof 4.6 % of a CPU
`},
		{"fair", &fair, `CPU        used 9.5 s in 10 s (0.9 CPUs), 3 threads
Profile    FAIR: 902 samples cover 94.7 % of it; 98 lost, 2 cut
           9.8 % of the samples are lost: the threads ended first
           try: --engine perf, which stops no thread
           5.0 % of the samples may stand in a call that had not begun when the thread was chosen
Hottest    31 % Cart.total
Cost       threads held 25 ms in all, longest 1 ms; goprof 1.2 % of a CPU
`},
		{"empty", &empty, `CPU        used 0 s in 2 s (no CPU)
Cost       no thread was held; goprof 0.0 % of a CPU
`},
		{"all lost", &lost, `CPU        used 0 s in 2 s (no CPU)
Profile    no samples: all 12 were lost: goprof could not keep up
Cost       no thread was held; goprof 0.0 % of a CPU
`},
		{"all lost, threads held", &held, `CPU        used 0 s in 2 s (no CPU)
Profile    no samples: all 2 were lost: goprof could not keep up
           threads were held for longer than 100ms, the longest for 250ms, 2 in all: no CPU
           try: perf
Cost       threads held 0.5 s in all, longest 0.25 s; goprof 0.0 % of a CPU
`},
		{"hostile", &hostile, `CPU        used 33.5 s in 20 s (1.7 CPUs), 10 threads
Profile    GOOD: 3,330 samples cover 99.7 % of it; none lost or cut
Hottest    50 % B.c,d   30 % x.B.c   10 % y.B.c
Cost       threads held 0.21 s in all, longest 0.5 ms; goprof 4.6 % of a CPU
Note       lib?x is gone
           try: sudo?[2J
`},
		{"wall", &wall, `Time       10 min in 20 s of 30 threads: 62 % parked  38 % running
Profile    GOOD: 12,000 samples, 20 a second of each thread; none lost or cut
Left out   14 threads of the JVM's own while idle (5,600 samples): --all-threads shows them
Hottest    62 % Pool.take (parked)   38 % Cart.total (running)
Cost       threads held 0.21 s in all, longest 0.5 ms; goprof 4.6 % of a CPU
`},
		{"late", &late, `CPU        used 33.5 s in 20 s (1.7 CPUs), 10 threads
Profile    GOOD: 3,330 samples cover 99.7 % of it; none lost or cut
Hottest    31 % Cart.total   14 % G1 collector   1 % kernel: write
Cost       threads held 0.21 s in all, longest 0.5 ms; goprof 4.6 % of a CPU
Note       the machine is short of CPU: goprof came too late for 4,000 samples, the longest gap is 1.5 s, of which nothing is known
`},
		{"perf", &perf, `CPU        used 33.5 s in 20 s (1.7 CPUs), 10 threads
Profile    GOOD: 3,330 samples cover 99.7 % of it; none lost or cut
Hottest    31 % Cart.total   14 % G1 collector   1 % kernel: write
Cost       no thread was held; goprof 4.6 % of a CPU
`},
		{"long pauses, guesses, some threads", &pauses, `CPU        used 33.5 s in 20 s (1.7 CPUs) by the threads that were chosen, 10 threads
Profile    GOOD: 3,330 samples cover 99.7 % of it; none lost or cut
Hottest    31 % Cart.total   14 % G1 collector   1 % kernel: write
Cost       threads held 0.21 s in all, longest 40 ms; goprof 4.6 % of a CPU
           try: --engine perf, which holds no thread
Note       in 50.0 % of the samples it is a guess which inlined method was on top: --leaf sure counts the method around it
`},
	} {
		if d := cmp.Diff(c.want, textOf(t, c.s)); d != "" {
			t.Errorf("%s: %s", c.what, d)
		}
	}
}

// TestSummaryHasNoInternalWords: terms of goprof's code appear only with --verbose.
func TestSummaryHasNoInternalWords(t *testing.T) {
	internal := regexp.MustCompile(`(?i)\b(looks?|void|behind|asleep|stale|ticks?|tally|queue full|snapshot)\b`)
	for r := range profile.NumReasons {
		s := someSummary()
		s.LostBy, s.TruncatedBy, s.Truncated = map[string]int64{}, map[string]int64{}, 500
		if r.Lost() {
			s.LostBy[r.String()] = 98
		} else {
			s.TruncatedBy[r.String()] = 500
		}
		s.Skipped, s.Gap, s.Waiting, s.Leans, s.Overflow = 5000, time.Minute, 9000, true, 300
		s.SetQuality()
		if text := textOf(t, &s); internal.MatchString(text) {
			t.Errorf("%q in %s", internal.FindString(text), text)
		}
	}
}

func goodSummary() profile.Summary {
	return profile.Summary{
		Meta: profile.Meta{Mode: "cpu", Duration: 20 * time.Second, Interval: 10 * time.Millisecond},
		Rate: 100, RateReached: 99, Attempted: 3330, Samples: 3330, Whole: 3330, Threads: 10, Quality: profile.Good,
		Times: profile.Times{Process: 33500 * time.Millisecond, Sampled: 33400 * time.Millisecond,
			NotSampled: 100 * time.Millisecond},
		Pauses: profile.Pauses{Count: 3330, Max: 500 * time.Microsecond, Total: 210 * time.Millisecond},
		OwnCPU: 920 * time.Millisecond,
		Hottest: []profile.Part{{Name: "com.shop.Cart.total", Share: 0.31}, {Name: "G1 collector", Share: 0.14},
			{Name: "kernel: write", Share: 0.013}},
	}
}

func wallSummary() profile.Summary {
	s := goodSummary()
	s.Meta.Mode, s.Rate, s.RateReached, s.Samples, s.Attempted, s.Threads = "wall", 20, 19.99, 12000, 12000, 30
	s.Times = profile.Times{}
	s.Looks = &profile.Looks{Time: 600 * time.Second, Idle: 5600, IdleThreads: 14}
	s.States = []profile.Part{{Name: "parked", Share: 0.62}, {Name: "running", Share: 0.38}, {Name: "file", Share: 0.001}}
	s.Hottest = []profile.Part{{Name: "a.b.Pool.take", State: "parked", Share: 0.62},
		{Name: "com.shop.Cart.total", State: "running", Share: 0.38}}
	return s
}

func TestSummaryDetails(t *testing.T) {
	s := someSummary()
	s.Notes = []profile.Note{{Name: "library-replaced", Text: "libx\nis gone", Remedy: "sudo"}}
	var b strings.Builder
	if err := SummaryDetails(&b, &s); err != nil {
		t.Fatal(err)
	}
	const want = `samples    902 of 1000 looks, 3 threads, in 10s
rate       99.5 Hz reached, 100 Hz asked
truncated  2 (0.2%): 2 stack longer than its copy
lost       98 (9.8%): 97 thread gone, 1 stale
asleep     45 samples (5.0%) of threads that entered a system call in the microseconds before they stopped
leaves     812 certain (90.0%), 30 likely (3.3%), 60 guessed (6.7%): which inlined method was running
cpu time   9.5s used: 94.7% sampled, 4.2% not sampled, 1.1% exited threads
pauses     p50 21.3µs, p99 80µs, max 1ms, 25ms together
note       library-replaced: libx?is gone
goprof     120ms of CPU (1.2% of one)
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 1: "0 µs", 1500: "1.5 µs", 98300: "98.3 µs", 500 * time.Microsecond: "0.5 ms",
		7790 * time.Microsecond: "7.79 ms", 99999 * time.Microsecond: "100 ms",
		158 * time.Millisecond: "0.16 s", 33500 * time.Millisecond: "33.5 s", 20 * time.Second: "20 s",
		119 * time.Second: "119 s", 600 * time.Second: "10 min", 3600 * time.Second: "1 h",
		1<<63 - 1: "2,562,047 h 47 min 16 s", time.Hour + 7071*time.Millisecond: "1 h 0 min 7 s",
	} {
		if got := Span(d); got != want {
			t.Errorf("%d: %q, not %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000",
		-100: "-100"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: %q, not %q", n, got, want)
		}
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
		if err := SummaryDetails(&b, &s); err != nil {
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

// TestAccountOfThinnedWaits: the account says if waits stand for others.
func TestAccountOfThinnedWaits(t *testing.T) {
	s := profile.Summary{Samples: 14000, Attempted: 14000, Threads: 9, Looks: &profile.Looks{Time: time.Minute},
		Meta:     profile.Meta{Mode: profile.ModeOffCPU, Engine: profile.EnginePerf, Duration: 10 * time.Second},
		Switches: &profile.Switches{Waits: 14000, Short: 7, ShortFor: time.Millisecond}}
	for _, c := range []struct {
		thinned int64
		want    string
	}{
		{0, "14,000 waits, each with its own time; 7 shorter ones (1 ms in all) have no stack; none lost or cut"},
		{9000, "14,000 waits; of those of less than 20 ms some stand for others, so a thread's time may be off by some " +
			"20 ms; 7 shorter ones (1 ms in all) have no stack; none lost or cut"},
	} {
		s.Switches.Thinned, s.Switches.Limit = c.thinned, 20*time.Millisecond
		var b strings.Builder
		if err := SummaryText(&b, &s); err != nil || !strings.Contains(b.String(), c.want) {
			t.Errorf("%v\n%s\nhas not\n%s", err, b.String(), c.want)
		}
	}
}

// TestAccountOfContents: the account explains how the bytes of classes are known. It names what was not read, and the
// classes without a stack.
func TestAccountOfContents(t *testing.T) {
	s := profile.Summary{Attempted: 500, Samples: 500,
		Events: []profile.EventCount{{Name: profile.EventAlloc, Unit: profile.Bytes, Hits: 500, Amount: 500 << 20}},
		Contents: &profile.Contents{Buffers: 100, Bytes: 50 << 20, Of: 400 << 20, Apart: 0.7, InStep: true, Unmet: 2,
			UnmetBytes: 3 << 20, Unread: map[string]int64{"a collection came before goprof": 1}}}
	told := func() string {
		var b strings.Builder
		if err := SummaryText(&b, &s); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := told()
	for _, want := range []string{"bytes by class are those of 100 buffers that were read, 50 MiB of 400 MiB",
		"the ends of buffers alone would be 70 % off", "[no stack seen]: no sample met the classes there, 2 with 3 MiB",
		"1 buffer not read: a collection came before goprof"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	s.Contents.Buffers = 0
	if text := told(); strings.Contains(text, "bytes by class") {
		t.Errorf("no buffer was read:\n%s", text)
	}
}

// TestAccountOfUnfreed: the account has the memory that was not freed, old and young separately, and says what is
// missing.
func TestAccountOfUnfreed(t *testing.T) {
	s := someSummary()
	s.Events = []profile.EventCount{{Name: profile.EventLeak, Unit: profile.Bytes, Hits: 1000, Amount: 5 << 20, Taken: 40,
		Stood: 4 << 20, Interval: 100 << 10}}
	part := profile.UnfreedPart{Samples: 3, Allocations: 1200, Bytes: 300 << 10}
	s.Unfreed = &profile.Unfreed{Old: part, Young: part, Freed: 34, Frees: 900}
	told := func() string {
		var b strings.Builder
		if err := SummaryText(&b, &s); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := told()
	for _, want := range []string{"[old] 300 KiB in 1,200 allocations (3 samples)", "[young] 300 KiB",
		"34 samples of freed", "2,900 hits of probes"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	s.Unfreed.NoStack, s.Unfreed.Full, s.Unfreed.Unended, s.Unfreed.Followed = part, 7, 5, 9*time.Second
	s.Unfreed.Parts = 1
	for _, want := range []string{"1 call unmapped a part",
		"followed for the first 9 s", "lost of 300 KiB", "no room for 7 samples", "of 5 calls"} {
		if !strings.Contains(told(), want) || strings.Contains(text, want) {
			t.Errorf("%q is not in, or too early:\n%s", want, told())
		}
	}
}

// TestAccountOfAllocations: if a process is killed, its last reading was before its end.
func TestAccountOfAllocations(t *testing.T) {
	s := someSummary()
	s.Meta.Duration = 10 * time.Second
	for counted, want := range map[time.Duration]string{0: "30 MiB, 3 MiB a second",
		9500 * time.Millisecond: "30 MiB, 3 MiB",
		2 * time.Second:         "30 MiB in the first 2 s, 15 MiB a second"} {
		s.Allocated = &profile.Allocated{Bytes: 30 << 20, Time: counted}
		var b strings.Builder
		if err := SummaryText(&b, &s); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v: %v, %q is not in:\n%s", counted, err, want, &b)
		}
	}
}
