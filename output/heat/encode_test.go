package heat

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/output"
	"goprof/output/recording"
	"goprof/profile"
)

func stackText(s *profile.Stack) string {
	var names []string
	for i := len(s.Frames) - 1; i >= 0; i-- {
		names = append(names, s.Frames[i].Func.Name)
	}
	return strings.Join(names, ";")
}

// TestPageHoldsTheSamples: by second, lane and stack, a page has the same samples as the recording.
func TestPageHoldsTheSamples(t *testing.T) {
	f := shop()
	for _, threads := range []bool{false, true} {
		d := decode(t, draw(t, f, Options{Threads: threads}))
		if d.Unit != "samples" || d.Columns != 60 || d.Rows != 50 || d.Cell != 0.02 || d.Start != float64(begin.UnixMilli()) {
			t.Errorf("%s, %d columns of %d cells of %v s from %v", d.Unit, d.Columns, d.Rows, d.Cell, d.Start)
		}
		bySecond, byCell, byStack, byLane := map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{}
		for i := range f.samples {
			s := &f.samples[i]
			when := time.Duration(s.At.Wall - begin.UnixNano())
			lane := poolOf(&s.Thread)
			if threads {
				lane = nameOf(&s.Thread)
			}
			bySecond[fmt.Sprint(int(when/time.Second))]++
			byCell[fmt.Sprint(int(when/(20*time.Millisecond)))]++
			byStack[stackText(s.Stack)]++
			byLane[lane]++
		}
		for what, c := range map[string]struct {
			want map[string]int64
			key  func(e *decodedEntry) string
		}{
			"second": {bySecond, func(e *decodedEntry) string { return fmt.Sprint(e.cell / 50) }},
			"cell":   {byCell, func(e *decodedEntry) string { return fmt.Sprint(e.cell) }},
			"stack":  {byStack, func(e *decodedEntry) string { return e.stack }},
			"lane":   {byLane, func(e *decodedEntry) string { return e.lane }},
		} {
			if diff := cmp.Diff(c.want, d.sum(c.key)); diff != "" {
				t.Errorf("by %s: %s", what, diff)
			}
		}
		if len(d.Marks) != len(f.marks) || d.Marks[1] != (mark{"gc", "G1 Evacuation Pause (young)", 4, 0.15}) {
			t.Errorf("marks: %v", d.Marks)
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	if err := Write(failing{}, timed(profile.Meta{}), Options{}); !errors.Is(err, ErrEmpty) {
		t.Errorf("no samples: %v", err)
	}
	if err := Write(failing{}, &fake{samples: shop().samples}, Options{}); !errors.Is(err, ErrNoTimes) {
		t.Errorf("no times: %v", err)
	}
	if err := Write(failing{}, shop(), Options{}); !errors.Is(err, errFull) {
		t.Errorf("full: %v", err)
	}
}

var errFull = errors.New("no space")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestOneSample(t *testing.T) {
	d := decode(t, draw(t, timed(profile.Meta{}, profile.Sample{At: at(0), Stack: names{}.stack("a.B.c")}), Options{}))
	want := []decodedEntry{{cell: 0, cells: 1, lane: noThread, stack: "a.B.c", weight: 1}}
	if d.Columns != 1 || len(d.entries) != 1 || d.entries[0] != want[0] {
		t.Errorf("%d columns, %v", d.Columns, d.entries)
	}
}

// TestAllOfTheTime: a recording is shown in its whole length, even if there are no samples at its beginning and its
// end.
func TestAllOfTheTime(t *testing.T) {
	one := profile.Sample{At: at(30 * time.Second), Stack: names{}.stack("a.B.c")}
	d := decode(t, draw(t, timed(profile.Meta{Start: begin, Duration: time.Minute}, one), Options{}))
	if d.Columns != 60 || d.entries[0].cell != 30*50 {
		t.Errorf("%d columns, cell %d", d.Columns, d.entries[0].cell)
	}
	d = decode(t, draw(t, timed(profile.Meta{Start: begin, Duration: 40*time.Second + 9*time.Millisecond}, one),
		Options{}))
	if d.Columns != 40 {
		t.Errorf("%d columns of 40.009 s", d.Columns)
	}
	d = decode(t, draw(t, timed(profile.Meta{Start: begin.Add(time.Hour), Duration: time.Minute}, one), Options{}))
	if d.Columns != 1 {
		t.Errorf("a start behind the samples was believed: %d columns", d.Columns)
	}
}

// TestLongRecording: the page of a day has longer cells, and loses no sample.
func TestLongRecording(t *testing.T) {
	for _, c := range []struct {
		length, column time.Duration
		columns        int
	}{
		{1000 * time.Second, 2 * time.Second, 500}, {999 * time.Second, time.Second, 999}, {time.Hour, 5 * time.Second, 720},
		{24 * time.Hour, 2 * time.Minute, 720}, {31 * 24 * time.Hour, time.Hour, 744},
	} {
		n, r := names{}, rand.New(rand.NewPCG(1, 2))
		f := timed(profile.Meta{Start: begin, Duration: c.length})
		for range 20_000 {
			f.samples = append(f.samples, profile.Sample{At: at(time.Duration(r.Int64N(int64(c.length)))),
				Stack: n.stack("a.B.c"), Count: 2})
		}
		d := decode(t, draw(t, f, Options{}))
		column := time.Duration(math.Round(d.Cell * float64(d.Rows) * 1e9))
		if d.Columns != c.columns || column != c.column || d.sum(func(*decodedEntry) string { return "" })[""] != 40_000 {
			t.Errorf("%s: %d columns of %s", c.length, d.Columns, column)
		}
	}
}

// TestSpans: a sample that stands for some time fills the cells of that time. Consecutive samples leave no gap.
func TestSpans(t *testing.T) {
	n := names{}
	f := timed(profile.Meta{Start: begin, Duration: 10 * time.Second, Mode: profile.ModeWall,
		Interval: 10 * time.Millisecond})
	r := rand.New(rand.NewPCG(3, 4))
	for d := time.Duration(0); d < 10*time.Second; {
		span := min(time.Duration(1+r.Int64N(int64(time.Second))), 10*time.Second-d)
		f.samples = append(f.samples, profile.Sample{At: at(d), Stack: n.stack("a.B.c"), Wall: true, State: profile.Parked,
			Span: span, Count: 7})
		d += span
	}
	f.samples = append(f.samples, profile.Sample{At: at(5 * time.Second), Stack: n.stack("a.B.run"), Wall: true})
	d := decode(t, draw(t, f, Options{}))
	seen := make([]int, d.Rows*d.Columns)
	total := int64(0)
	for _, e := range d.entries {
		switch e.stack {
		case "a.B.c;[parked]":
			total += e.weight
			for c := range e.cells {
				seen[e.cell+c]++
			}
		case "a.B.run;[running]":
			if e.weight != 10_000 {
				t.Errorf("a look without a span stands for the interval, not for %d us", e.weight)
			}
		default:
			t.Errorf("stack %s", e.stack)
		}
	}
	for cell, times := range seen {
		if times != 1 {
			t.Errorf("cell %d: %d times", cell, times)
		}
	}
	if d.Unit != "time" || total < 9_999_900 || total > 10_000_100 {
		t.Errorf("%d of %s", total, d.Unit)
	}
}

// TestOtherWeights: pages of bytes and of CPU time.
func TestOtherWeights(t *testing.T) {
	one := profile.Sample{At: at(0), Stack: names{}.stack("a.B.c"), Bytes: 4096, CPU: 3 * time.Millisecond}
	for weight, want := range map[profile.Weight]int64{profile.Bytes: 4096, profile.CPUTime: 3000, profile.Samples: 1} {
		d := decode(t, draw(t, timed(profile.Meta{Weight: weight}, one), Options{}))
		if d.entries[0].weight != want || d.Unit != weight.String() {
			t.Errorf("%d %s, want %d %s", d.entries[0].weight, d.Unit, want, weight)
		}
	}
}

// TestNoSuchWeight: a recording may lack its own main weight.
func TestNoSuchWeight(t *testing.T) {
	one := profile.Sample{At: at(0), Stack: names{}.stack("a.B.c"), Count: 3}
	d := decode(t, draw(t, timed(profile.Meta{Weight: profile.CPUTime}, one), Options{}))
	if d.Unit != "samples" || d.entries[0].weight != 3 {
		t.Errorf("%d %s", d.entries[0].weight, d.Unit)
	}
	one.Wall, one.Span = true, 60*time.Millisecond
	d = decode(t, draw(t, timed(profile.Meta{Weight: profile.CPUTime}, one), Options{}))
	if d.Unit != "time" || d.entries[0].weight != 60_000 || d.entries[0].cells != 3 {
		t.Errorf("%+v %s", d.entries[0], d.Unit)
	}
}

// TestWeightIsAskedFor: looks that stand for time count as looks if the user asks for that.
func TestWeightIsAskedFor(t *testing.T) {
	f := timed(profile.Meta{}, profile.Sample{At: at(0), Stack: names{}.stack("a.B.c"), Wall: true, Span: time.Second,
		Count: 3})
	f.info.Asked = true
	if d := decode(t, draw(t, f, Options{})); d.Unit != "samples" || d.entries[0].weight != 3 {
		t.Errorf("%d %s", d.entries[0].weight, d.Unit)
	}
	f.info.Meta.Weight = profile.CPUTime
	if err := Write(io.Discard, f, Options{}); !recording.IsBad(err) {
		t.Errorf("without CPU time: %v", err)
	}
}

// TestEntriesAreBounded: if there are too many entries, cells become longer. Nothing is lost.
func TestEntriesAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	e := entries{grid: newGrid(extent{to: int64(100 * time.Second)}), most: 1000}
	for range 20_000 {
		first := r.Uint32N(uint32(e.grid.cells()))
		e.add(entry{cell: first, cells: min(1+r.Uint32N(3), uint32(e.grid.cells())-first), lane: r.Int32N(3),
			node: r.Int32N(4), weight: 2}, nil)
		if len(e.list) > 1000 {
			t.Fatalf("%d entries are held", len(e.list))
		}
	}
	e.bound(50, nil)
	total := int64(0)
	for _, one := range e.list {
		total += one.weight
		if int(one.cell+one.cells) > e.grid.cells() || one.cells == 0 {
			t.Fatalf("%v of %d cells", one, e.grid.cells())
		}
	}
	if total != 40_000 || len(e.list) > 50 {
		t.Errorf("%d in %d entries", total, len(e.list))
	}
	if got := time.Duration(e.grid.column()) * time.Duration(e.grid.columns); got < 100*time.Second {
		t.Errorf("%d columns of %d ns are only %s", e.grid.columns, e.grid.column(), got)
	}
}

// TestManyLanesAndStacks: if a single cell has too many entries, the stacks of the lightest entries are cut.
func TestManyLanesAndStacks(t *testing.T) {
	tree := &output.Tree{Nodes: make([]output.TreeNode, 1)}
	for i := range int32(4096) { // a chain from which stacks branch off
		tree.Nodes = append(tree.Nodes, output.TreeNode{Parent: i % 512})
	}
	e := entries{grid: newGrid(extent{to: int64(time.Second)}), most: 1000}
	for i := range 10_000 {
		e.add(entry{cell: uint32(i % e.grid.cells()), cells: 1, lane: int32(i % 10), node: int32(i*7%4096 + 1), weight: 1},
			tree)
	}
	e.add(entry{cells: 1, lane: 3, node: 4000, weight: 1000}, tree)
	e.bound(300, tree)
	total, heavy := int64(0), false
	for _, one := range e.list {
		total += one.weight
		heavy = heavy || one.node == 4000 && one.weight >= 1000
	}
	if total != 11_000 || len(e.list) > 300 || !e.cut || !heavy {
		t.Errorf("%d in %d entries, cut %v, the heaviest is there: %v", total, len(e.list), e.cut, heavy)
	}
}

// TestManyLanes: the threads with the fewest samples share one lane.
func TestManyLanes(t *testing.T) {
	n := names{}
	f := timed(profile.Meta{})
	for i := range 300 {
		for k := range 1 + i/100 {
			f.samples = append(f.samples, profile.Sample{At: at(time.Duration(k)), Stack: n.stack("a.B.c"),
				Thread: profile.Thread{TID: 1000 + i, Name: "worker"}})
		}
	}
	d := decode(t, draw(t, f, Options{Threads: true}))
	if len(d.Lanes) != maxLanes || d.Lanes[0] != "worker tid=1200" || d.Lanes[maxLanes-1] != "101 other lanes" {
		t.Errorf("%d lanes from %s to %s", len(d.Lanes), d.Lanes[0], d.Lanes[len(d.Lanes)-1])
	}
	if got := d.sum(func(e *decodedEntry) string { return e.lane })["101 other lanes"]; got != 102 {
		t.Errorf("the last has %d", got)
	}
	d = decode(t, draw(t, f, Options{}))
	if diff := cmp.Diff([]string{"worker"}, d.Lanes); diff != "" {
		t.Error(diff)
	}
}

func TestNamesOfLanes(t *testing.T) {
	for _, c := range []struct {
		thread     profile.Thread
		pool, name string
	}{
		{profile.Thread{}, noThread, noThread},
		{profile.Thread{TID: 7, Name: "C2 CompilerThre"}, "C2 CompilerThre", "C2 CompilerThre tid=7"},
		{profile.Thread{TID: 7, Name: "pool-1-thread-1", JavaName: "pool-1-thread-17"}, "pool-1-thread-*",
			"pool-1-thread-17 tid=7"},
		{profile.Thread{TID: 7, Virtual: true, JavaID: 31}, virtuals, "virtual #31"},
		{profile.Thread{TID: 7, Virtual: true, JavaID: 31, JavaName: "req-8"}, "req-*", "req-8 virtual #31"},
	} {
		if pool, name := poolOf(&c.thread), nameOf(&c.thread); pool != c.pool || name != c.name {
			t.Errorf("%+v: %q, %q", c.thread, pool, name)
		}
	}
}

// TestAbsurdTimes: a page is bounded for any times in a file.
func TestAbsurdTimes(t *testing.T) {
	n := names{}
	for _, times := range [][2]int64{{math.MinInt64, math.MaxInt64}, {0, math.MaxInt64}, {math.MaxInt64, math.MaxInt64},
		{math.MinInt64, math.MinInt64}} {
		f := timed(profile.Meta{Start: time.Unix(0, times[0]), Duration: math.MaxInt64, Interval: math.MaxInt64})
		for _, wall := range times {
			f.samples = append(f.samples, profile.Sample{At: profile.Instant{Wall: wall}, Stack: n.stack("a.B.c"),
				Count: math.MaxInt64},
				profile.Sample{At: profile.Instant{Wall: wall}, Wall: true, Span: math.MaxInt64, Count: math.MaxInt64,
					CPU: math.MaxInt64, Bytes: math.MinInt64})
		}
		f.marks = []recording.Mark{{Kind: "gc", At: profile.Instant{Wall: times[1]}, For: math.MaxInt64}}
		d := decode(t, draw(t, f, Options{}))
		if d.Columns > maxColumns+1 || d.Columns < 1 {
			t.Errorf("%v: %d columns", times, d.Columns)
		}
		for _, e := range d.entries {
			if e.cell+e.cells > d.Rows*d.Columns || e.cells < 1 || e.weight < 0 {
				t.Errorf("%v: %+v of %d cells", times, e, d.Rows*d.Columns)
			}
		}
	}
}

// TestTruncatedAndEmptyStacks: the page shows what is missing in a stack, and where.
func TestTruncatedAndEmptyStacks(t *testing.T) {
	cut := names{}.stack("a.B.c")
	cut.Truncated = profile.TooDeep
	d := decode(t, draw(t, timed(profile.Meta{}, profile.Sample{At: at(0), Stack: cut}, profile.Sample{At: at(0)}),
		Options{}))
	want := map[string]int64{"[truncated: deeper than --depth];a.B.c": 1, "[no stack]": 1}
	if diff := cmp.Diff(want, d.sum(func(e *decodedEntry) string { return e.stack })); diff != "" {
		t.Error(diff)
	}
}

// TestDrawnStacks: a page has the stacks in the shape in which they are drawn, and also with all frames.
func TestDrawnStacks(t *testing.T) {
	n := names{}
	entered := func(leaf string) *profile.Stack {
		s := n.stack("__clone3", "start_thread", "call_stub", "a.B.run", leaf)
		for i := range s.Frames[2:] {
			s.Frames[2+i].Kind = profile.Native
		}
		return s
	}
	f := timed(profile.Meta{}, profile.Sample{At: at(0), Stack: entered("a.B.c")},
		profile.Sample{At: at(time.Second), Stack: entered("a.B.d")})
	const all = "__clone3;start_thread;call_stub;a.B.run;a.B."
	for shape, want := range map[output.Shape][2]string{
		{}:                     {all, ""},
		output.Shape{}.Drawn(): {"[thread entry];a.B.run;a.B.", all},
	} {
		d := decode(t, draw(t, f, Options{Shape: shape}))
		if len(d.entries) != 2 || d.entries[0].stack != want[0]+"c" || d.entries[1].stack != want[0]+"d" ||
			want[1] != "" && (d.entries[0].whole != want[1]+"c" || d.entries[1].whole != want[1]+"d") ||
			want[1] == "" && d.Whole != nil {
			t.Errorf("%+v: %+v", shape, d.entries)
		}
	}
}
