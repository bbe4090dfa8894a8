package profile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// stack makes a stack from names, given root first.
func stack(why Reason, names ...string) *Stack {
	s := &Stack{Truncated: why}
	for _, name := range slices.Backward(names) {
		s.Frames = append(s.Frames, Frame{Func: &Func{Name: name}, Kind: C2})
	}
	return s
}

// contents lists a profile as lines.
func contents(p *Profile) (lines []string) {
	p.Each(func(frames []Frame, n int64) {
		var names []string
		for _, f := range frames {
			names = append(names, f.Func.Name)
		}
		lines = append(lines, fmt.Sprintf("%s %d", strings.Join(names, ";"), n))
	})
	return lines
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestAdd(t *testing.T) {
	p := New()
	p.Add("", stack(Whole, "main", "run", "work"), 1)
	p.Add("", stack(Whole, "main", "run", "work"), 2)
	p.Add("", stack(Whole, "main", "run"), 5)
	p.Add("[pool-1 tid=7]", stack(Whole, "main"), 1)
	p.Add("", stack(StackCut, "work"), 4)
	p.Add("[pool-1 tid=7]", stack(TooDeep, "deep"), 1)
	p.Add("", stack(Whole), 1)           // a thread without frames is still a sample
	p.Add("", stack(Whole, "never"), 0)  // adds nothing
	p.Add("", stack(Whole, "never"), -3) // adds nothing
	expect(t, contents(p),
		" 1",
		"[pool-1 tid=7];[truncated: deeper than --depth];deep 1",
		"[pool-1 tid=7];main 1",
		"[truncated: stack longer than its copy];work 4",
		"main;run 5",
		"main;run;work 3")
}

// A copy can be read while samples are added to the profile.
func TestCopy(t *testing.T) {
	p := New()
	for i := range 10_000 {
		p.Add("", stack(Whole, "main", fmt.Sprint("f", i%5000)), 1)
	}
	before, counts := contents(p), p.Counts
	c := p.Copy()
	done := make(chan struct{})
	go func() { // a goroutine, so that the race detector can find errors, too
		defer close(done)
		for i := range 10_000 {
			p.Add("[new]", stack(Whole, "main", fmt.Sprint("f", i)), 3)
			p.Add("", stack(Whole, "main", fmt.Sprint("f", i%5000)), 1)
		}
	}()
	for range 5 {
		expect(t, contents(c), before...)
	}
	<-done
	if c.Counts != counts || p.Counts == counts {
		t.Errorf("%+v, of the copy %+v", p.Counts, c.Counts)
	}
	expect(t, contents(c), before...)
}

func TestSameContentIsOneFunction(t *testing.T) {
	p := New()
	for range 3 {
		p.Add("", stack(Whole, "a", "b"), 1) // the Funcs are new each time
	}
	if p.Nodes() != 2 {
		t.Errorf("%d nodes, want 2", p.Nodes())
	}
	expect(t, contents(p), "a;b 3")
}

func TestKindsStayApart(t *testing.T) {
	p := New()
	s := stack(Whole, "a")
	p.Add("", s, 1)
	s.Frames[0].Kind = Interpreted
	p.Add("", s, 1)
	expect(t, contents(p), "a 1", "a 1")
}

func TestCountsAddUp(t *testing.T) {
	p := New()
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		why, n := Reason(r.IntN(int(NumReasons)+2)), int64(r.IntN(3)) // two of the reasons are unknown
		if why.Lost() && r.IntN(2) == 0 {
			p.Lose(why, n)
		} else {
			p.Add("", stack(why, "a"), n)
		}
	}
	p.Lose(BadMethod, 1) // BadMethod is not a reason to lose a sample, but the loss must be counted
	c := &p.Counts
	if c.Attempted == 0 || c.Attempted != c.Whole+c.TruncatedSum()+c.LostSum() {
		t.Errorf("%d attempted, %d whole, %d truncated, %d lost", c.Attempted, c.Whole, c.TruncatedSum(), c.LostSum())
	}
	var inTree int64
	p.Each(func(_ []Frame, n int64) { inTree += n })
	if inTree != c.Samples() {
		t.Errorf("%d samples in the tree, %d counted", inTree, c.Samples())
	}
	s := p.Summary()
	if s.Attempted != s.Whole+s.Truncated+s.Lost || s.Samples != inTree {
		t.Errorf("summary does not add up: %+v", s)
	}
}

func TestFullTreeIsHonest(t *testing.T) {
	p := NewSize(100)
	const stacks = 1000
	for i := range stacks {
		p.Add("", stack(Whole, "root", fmt.Sprint("f", i), fmt.Sprint("g", i)), 1)
	}
	if p.Nodes() >= 100 {
		t.Errorf("%d nodes", p.Nodes())
	}
	var inTree, full int64
	under := map[int]int64{}
	p.Each(func(frames []Frame, n int64) {
		inTree += n
		if leaf := frames[len(frames)-1].Func; leaf == p.full {
			full += n
			if len(frames) > 1 && frames[0].Func.Name != "root" {
				t.Errorf("%s is not where the stacks are known to", leaf.Name)
			}
			under[len(frames)] += n
		}
	})
	if under[2] == 0 { // some samples still had room for their caller
		t.Errorf("cut at these depths: %v", under)
	}
	if inTree != stacks || full != p.Overflow || full == 0 || p.Summary().Overflow != full {
		t.Errorf("%d samples in the tree, %d under the overflow frame, %d counted as overflow", inTree, full, p.Overflow)
	}
	p.Add("", stack(Whole, "root", "f0", "g0"), 1) // a known stack is still counted
	if p.Overflow != full {
		t.Error("a known stack overflowed")
	}
}

// TestPathShortcut compares the shortcut along the last path with a simple sum.
func TestPathShortcut(t *testing.T) {
	p, plain := New(), map[string]int64{}
	r := rand.New(rand.NewPCG(3, 4))
	funcs := []*Func{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for range 20_000 {
		s := &Stack{}
		var names []string
		for range r.IntN(6) {
			f := funcs[r.IntN(len(funcs))]
			s.Frames = append([]Frame{{Func: f}}, s.Frames...)
			names = append(names, f.Name)
		}
		p.Add("", s, 1)
		plain[strings.Join(names, ";")]++
	}
	var want []string
	for names, n := range plain {
		want = append(want, fmt.Sprintf("%s %d", names, n))
	}
	got := contents(p)
	slices.Sort(got)
	slices.Sort(want)
	expect(t, got, want...)
}

func TestEachLineMergesAndSorts(t *testing.T) {
	p := New()
	for _, s := range [][]string{{"a", "x"}, {"a b", "x"}, {"a"}, {"a b"}, {"a1", "y"}, {"a!"}, {"A", "x"},
		{"a", "x", "z"}} {
		p.Add("", stack(Whole, s...), 1)
	}
	twin := stack(Whole, "a", "x")
	twin.Frames[0].Func = &Func{Name: "x", Module: "other.so"}
	p.Add("", twin, 1)

	var lines []string
	p.EachLine(func(f *Func, _ Kind) string { return f.Name }, func(path []string, n int64) {
		lines = append(lines, fmt.Sprintf("%s %d", strings.Join(path, ";"), n))
	})
	if !slices.IsSorted(lines) {
		t.Errorf("not sorted: %q", lines)
	}
	if len(lines) != 8 || !slices.Contains(lines, "a;x 2") {
		t.Errorf("%q", lines)
	}
}

func TestAddAllocatesNothingOnceWarm(t *testing.T) {
	p, stacks := New(), deepStacks(100)
	i := 0
	add := func() {
		p.Add("[worker tid=1]", stacks[i%len(stacks)], 1)
		i++
	}
	for range stacks {
		add()
	}
	if n := testing.AllocsPerRun(1000, add); n != 0 {
		t.Errorf("%v allocations for each stack", n)
	}
}

// deepStacks returns stacks of 60 frames that share half of them.
func deepStacks(n int) []*Stack {
	r := rand.New(rand.NewPCG(5, 6))
	funcs := make([]*Func, 300)
	for i := range funcs {
		funcs[i] = &Func{Name: fmt.Sprintf("com.example.Class%d.method", i)}
	}
	stacks := make([]*Stack, n)
	for i := range stacks {
		s := &Stack{}
		for depth := range 60 {
			f := funcs[depth]
			if depth < 30 {
				f = funcs[r.IntN(len(funcs))]
			}
			s.Frames = append(s.Frames, Frame{Func: f, Kind: C2})
		}
		stacks[i] = s
	}
	return stacks
}

func BenchmarkAdd(b *testing.B) {
	p, stacks := New(), deepStacks(5000)
	for _, s := range stacks {
		p.Add("", s, 1)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Add("", stacks[i%len(stacks)], 1)
	}
	b.ReportMetric(float64(p.Nodes()), "nodes")
}

func BenchmarkAddCold(b *testing.B) {
	stacks := deepStacks(5000)
	b.ReportAllocs()
	for b.Loop() {
		p := New()
		for _, s := range stacks {
			p.Add("", s, 1)
		}
	}
}

func BenchmarkEach(b *testing.B) {
	p := New()
	for _, s := range deepStacks(5000) {
		p.Add("", s, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Each(func([]Frame, int64) {})
	}
}
