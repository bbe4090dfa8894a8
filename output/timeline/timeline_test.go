package timeline

import (
	"math"
	"testing"
	"time"

	"goprof/profile"
	"goprof/testdata/sources"
)

// TestBound: however little room there is, each look is kept or counted as left out. The CPU time of kept looks is not
// lost.
func TestBound(t *testing.T) {
	for _, most := range []int{1, 10, 1000, 100_000} {
		all, err := Collect(sources.Many(5000), Options{Samples: most})
		if err != nil {
			t.Fatal(err)
		}
		tl := all[0]
		kept, looks, cpu := 0, int64(0), int64(0)
		for _, tr := range tl.Tracks {
			kept += len(tr.Samples)
			for i := range tr.Samples {
				looks += tr.Samples[i].Looks
				cpu += tr.Samples[i].CPU
				if i > 0 && tr.Samples[i].At < tr.Samples[i-1].At {
					t.Fatalf("%s is not in the order of time", tr.Name)
				}
			}
		}
		if kept > most || looks+tl.LeftOut != 5000 || tl.Looks != 5000 || cpu != looks*int64(time.Millisecond) {
			t.Errorf("room for %d: %d samples of %d looks, %d left out", most, kept, looks, tl.LeftOut)
		}
		if most == 100_000 && (tl.Merged != 0 || len(tl.Notes()) != 0) || most < 5000 && len(tl.Notes()) == 0 {
			t.Errorf("room for %d: %q", most, tl.Notes())
		}
	}
}

// TestStacks: if a Source overwrites a stack, the new stack is not confused with the old one. Stacks with different
// Funcs of the same content are equal.
func TestStacks(t *testing.T) {
	s := newStacks()
	fn, same := *sources.Round, *sources.Round
	frames := []profile.Frame{{Func: &fn, Kind: profile.C2, Line: 1}}
	st := &profile.Sample{Stack: &profile.Stack{Frames: frames}}
	var at [3]stackPlace
	for i, change := range []func(){
		func() {}, func() { frames[0].Line = 2 }, func() { frames[0].Line, frames[0].Func = 1, &same },
	} {
		change()
		at[i], _ = s.add(st)
	}
	if at[0] == at[1] || at[0] != at[2] || len(s.nodes) != 3 {
		t.Errorf("%v of %d", at, len(s.nodes))
	}
}

// TestSince: a file may have any times.
func TestSince(t *testing.T) {
	for _, c := range []struct{ from, to, want int64 }{
		{1, 3, 2}, {3, 1, 0}, {math.MinInt64, math.MaxInt64, math.MaxInt64}, {-5, 5, 10}, {math.MaxInt64, math.MinInt64, 0},
	} {
		if got := Since(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %d, not %d", c.from, c.to, got, c.want)
		}
	}
}
