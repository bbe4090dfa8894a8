// Package shipped holds a recording for tests of what is sent to servers, and what such a test compares: stacks with
// their counts, as goprof's own collapsed text has them.
package shipped

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
)

// Start is the moment of the first sample, ns since 1970.
const Start = int64(1_790_000_000_000_000_000)

// Interval lies between two samples.
const Interval = 10 * time.Millisecond

var threads = []profile.Thread{
	{TID: 12, Name: "worker", JavaID: 30, JavaName: "pool-1-thread-1"},
	{TID: 15, Name: "worker", JavaID: 31, JavaName: "pool-1-thread-2"},
	{TID: 13, Name: "GC Thread#0"},
	{TID: 14, Name: "carrier", JavaID: 41, JavaName: "request;\x1b<7>", Virtual: true},
	{TID: 14, Name: "carrier", JavaID: 42, Virtual: true},
}

// LibC is an image of which a symbol server may know more than goprof.
const (
	LibC      = "/usr/lib/libc.so.6"
	LibCBuild = "0123456789abcdef0123456789abcdef01234567"
)

func frame(kind profile.Kind, name string) profile.Frame {
	f := profile.Frame{Func: &profile.Func{Name: name}, Kind: kind, BCI: -1}
	if kind.Java() {
		f.Func.File, f.Line, f.BCI = "Shop.java", int32(10+len(name)), 3
	} else if kind == profile.Native {
		f.Func.Module, f.Func.Build, f.PC = LibC, LibCBuild, 0x7f0000001000
	}
	return f
}

// stacks have frames of all kinds, and names that would do harm.
var stacks = []*profile.Stack{
	{Frames: []profile.Frame{frame(profile.Inlined, "shop.Price.round"), frame(profile.Inlined, "shop.Price.of"),
		frame(profile.C2, "shop.Cart.sum"), frame(profile.Interpreted, "shop.Main.main")}},
	{Frames: []profile.Frame{frame(profile.C1, "shop.Main.lambda$main$0;\n"),
		frame(profile.Interpreted, "shop.Main.main")}},
	{Frames: []profile.Frame{frame(profile.NativeMethod, "java.lang.System.nanoTime"),
		frame(profile.C2, "</script>.<init>")}},
	{Frames: []profile.Frame{frame(profile.Native, "G1ParTask::work(unsigned int)")}, Truncated: profile.NoUnwindInfo},
	{Frames: []profile.Frame{frame(profile.Native, "libc.so.6+0x1f2a"), frame(profile.Native, "clone3")}},
	{Frames: []profile.Frame{frame(profile.Stub, "StubRoutines (1)"),
		frame(profile.Gap, "[no unwind info: libfoo.so]"), frame(profile.C2, "shop.Main.main")}},
	{Frames: []profile.Frame{frame(profile.C2, "shop.\xff.é"), frame(profile.Inlined, "shop.Cut.off")}},
}

// Samples are n looks, one each Interval.
func Samples(n int, wall bool) (all []*profile.Sample) {
	for i := range n {
		d := time.Duration(i) * Interval
		s := &profile.Sample{At: profile.Instant{Wall: Start + int64(d), Ticks: int64(d)}, Thread: threads[i%len(threads)],
			Stack: stacks[i*5%len(stacks)], CPU: Interval - time.Duration(i)}
		if wall {
			s.Wall, s.Span, s.State = true, Interval, profile.State(i%4)
		}
		all = append(all, s)
	}
	return all
}

// Batch is what goprof sends of samples.
func Batch(samples []*profile.Sample, o batch.GatherOptions) *batch.Batch {
	g := batch.NewGatherer(o)
	m := profile.Meta{Version: "1.2.3", Host: "host-7", PID: 4711, MainClass: "shop.Main", JVM: "25",
		Mode: profile.ModeCPU, Engine: profile.EnginePtrace, Interval: Interval, Weight: profile.CPUTime}
	for _, s := range samples {
		g.Add(s)
		if s.Wall {
			m.Mode, m.Weight = profile.ModeWall, profile.Samples
		}
	}
	var attributes resource.Attributes
	attributes.Set(resource.ServiceName, "shop")
	attributes.Set(resource.HostName, "host-7")
	attributes.SetInt(resource.ProcessPID, 4711)
	end := time.Duration(len(samples)) * Interval
	return g.Take(attributes, m, time.Unix(0, Start), time.Unix(0, Start+int64(end)))
}

// Counts are stacks with a number each: "root;caller;leaf".
type Counts map[string]int64

var suffix = regexp.MustCompile(`_\[[j01ik]\](;| [0-9]+$)`)

// Collapsed are the counts of goprof's own collapsed text of the samples, without what the text says of compilers.
func Collapsed(t testing.TB, samples []*profile.Sample, w profile.Weight) Counts {
	t.Helper()
	p := profile.New()
	p.Meta.Weight = w
	for _, s := range samples {
		d := s.CPU
		if s.Wall {
			d = s.Span
		}
		p.AddTimed("", s.Stack, s.Looks(), d)
	}
	var text bytes.Buffer
	if err := output.Collapsed(&text, p); err != nil {
		t.Fatal(err)
	}
	counts := make(Counts)
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		for suffix.MatchString(line) {
			line = suffix.ReplaceAllString(line, "$1")
		}
		at := strings.LastIndexByte(line, ' ')
		n, err := strconv.ParseInt(line[at+1:], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		counts[line[:at]] += n
	}
	return counts
}

// Add counts a stack whose names are leaf first.
func (c Counts) Add(names []string, n int64) {
	var path []string
	for i := len(names) - 1; i >= 0; i-- {
		path = append(path, output.CleanName(names[i]))
	}
	c[strings.Join(path, ";")] += n
}

// Same fails a test if a server's counts are not goprof's.
func Same(t testing.TB, what string, got, want Counts) {
	t.Helper()
	for stack, n := range want {
		if got[stack] != n {
			t.Errorf("%s: %d, want %d, of %q", what, got[stack], n, stack)
		}
	}
	for stack, n := range got {
		if _, known := want[stack]; !known {
			t.Errorf("%s: %d of %q, which is not goprof's", what, n, stack)
		}
	}
	if len(want) == 0 {
		t.Errorf("%s: nothing to compare", what)
	}
}

// Nameless is how goprof names native code of which only the address is known.
func Nameless(file string, address uint64) string {
	return fmt.Sprintf("%s+%#x", file[strings.LastIndexByte(file, '/')+1:], address)
}
