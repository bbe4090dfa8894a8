package profile

import (
	"testing"
	"time"
)

// TestPlaces: a stack is counted again at the place where it was added, also with another leaf. The account stays
// right.
func TestPlaces(t *testing.T) {
	p := New()
	p.Meta.Weight = WallTime
	leaf, ready := &Func{Name: Parked.Label("")}, &Func{Name: Runnable.Label("")}
	s := stack(Whole, "main", "park")
	s.Frames = append([]Frame{{Func: leaf, Kind: StateFrame}}, s.Frames...)
	at := p.AddAt("[t tid=1]", s, 1, time.Second)
	p.Again(at, 9, 9*time.Second)
	beside := p.Beside(at, ready, StateFrame)
	p.Again(beside, 2, 2*time.Second)
	p.Again(at, -2, -2*time.Second) // the stack was counted too often
	if again := p.AddAt("[t tid=1]", s, 0, 0); again != at {
		t.Errorf("the same stack is at %v and at %v", at, again)
	}
	want := map[string]int64{"[parked]": 8, "[runnable]": 2}
	for _, w := range []Weight{Samples, WallTime} {
		p.Meta.Weight = w
		got := map[string]int64{}
		p.Each(func(frames []Frame, n int64) {
			if len(frames) != 4 || frames[0].Func.Name != "[t tid=1]" {
				t.Errorf("%d frames", len(frames))
			}
			got[frames[len(frames)-1].Func.Name] += n
		})
		for name, n := range want {
			if w == WallTime {
				n *= int64(time.Second)
			}
			if got[name] != n {
				t.Errorf("%v: %v", w, got)
			}
		}
	}
	if p.Counts.Attempted != 10 || p.Counts.Whole != 10 || p.Time != 10*time.Second {
		t.Errorf("%+v, %v", p.Counts, p.Time)
	}
}

// TestPlacesInAFullProfile: a stack without room is also counted at its place.
func TestPlacesInAFullProfile(t *testing.T) {
	p := NewSize(1)
	s := stack(NotStopped, "main", "park", "and", "more")
	at := p.AddAt("", s, 2, 0)
	other := p.Beside(at, &Func{Name: "[runnable]"}, StateFrame)
	p.Again(other, 3, 0)
	n := int64(0)
	p.Each(func(_ []Frame, self int64) { n += self })
	if n != 5 || p.Overflow != 5 || p.Counts.Truncated[NotStopped] != 5 {
		t.Errorf("%d in the tree, %d overflowed, %+v", n, p.Overflow, p.Counts)
	}
	p.Again(Place{node: 1 << 20}, 1, 0) // this place is in another profile: it is not counted, and nothing panics
	if p.Counts.Attempted != 5 {
		t.Errorf("%+v", p.Counts)
	}
}

// TestSure: the certainty of the leaf is counted with its stack, also when that stack is counted again. The frame for a
// thread's state is certain.
func TestSure(t *testing.T) {
	p := New()
	s := stack(Whole, "main", "outer", "inner")
	s.Frames[0].Sure = Guessed
	at := p.AddAt("", s, 3, 0)
	p.Again(at, 2, 0)
	p.Again(p.Beside(at, &Func{Name: "[runnable]"}, StateFrame), 4, 0)
	s.Frames[0].Sure = Likely
	p.AddAt("", s, 1, 0)
	p.AddAt("", stack(Whole, "main"), 7, 0)
	if want := [NumCertainty]int64{11, 1, 5}; p.Sure != want || p.Copy().Sure != want {
		t.Errorf("%v, not %v", p.Sure, want)
	}
	if sum := p.Summary(); sum.LeafLikely != 1 || sum.LeafGuessed != 5 {
		t.Errorf("%+v", sum)
	}
}

func TestStateLabels(t *testing.T) {
	for s := range State(numStates) {
		for _, what := range []string{"", "a.B$C", "int[][]", "x: y"} {
			if label := s.Label(what); !IsState(label) {
				t.Errorf("%q is no state", label)
			}
		}
	}
	for _, name := range []string{"", "[", "]", "[]", "parked", "[parked", "[park]", "[main tid=1]",
		"[truncated: too deep]", "[parked tid=1]", "a[running]"} {
		if IsState(name) {
			t.Errorf("%q is a state", name)
		}
	}
}

// TestStackAt: a place returns its stack, without the frame of its thread and the frame for a missing root.
func TestStackAt(t *testing.T) {
	p := New()
	for _, why := range []Reason{Whole, NoUnwindInfo} {
		for _, root := range []string{"", "[t tid=1]"} {
			s := stack(why, "main", "run", "park")
			s.Frames[0].Sure = Guessed
			got := p.StackAt(p.AddAt(root, s, 1, 0), root != "", nil)
			if got.Truncated != why || len(got.Frames) != 3 || got.Frames[0].Sure != Guessed {
				t.Fatalf("%v under %q: %+v", why, root, got)
			}
			for i := range got.Frames {
				if *got.Frames[i].Func != *s.Frames[i].Func || got.Frames[i].Kind != s.Frames[i].Kind {
					t.Errorf("frame %d: %+v", i, got.Frames[i])
				}
			}
		}
	}
	if got := p.StackAt(Place{node: 1 << 20}, true, nil); len(got.Frames) != 0 {
		t.Errorf("of another profile: %+v", got)
	}
}
