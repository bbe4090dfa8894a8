package profile

import (
	"slices"
	"testing"
)

func fnOf(name string) *Func { return &Func{Name: name} }

// TestSettle: only guessed frames are removed, down to the code that they were inlined into.
func TestSettle(t *testing.T) {
	a, b, c := fnOf("a"), fnOf("b"), fnOf("c")
	for sure, want := range map[Certainty]int{Certain: 4, Likely: 4, Guessed: 2} {
		s := &Stack{Carrier: 3, Frames: []Frame{{Func: a, Kind: Inlined, Sure: sure}, {Func: b, Kind: Inlined},
			{Func: c, Kind: C2}, {Func: a, Kind: Inlined}}}
		if in := s.Guessed(); in != nil && (sure != Guessed || in != c) {
			t.Errorf("%v: in %v", sure, in)
		}
		s.Settle()
		if len(s.Frames) != want || s.Carrier != want-1 ||
			want == 2 && (s.Frames[0].Func != c || s.Frames[0].Sure != Certain) {
			t.Errorf("%v: %+v, carrier from %d", sure, s.Frames, s.Carrier)
		}
	}
	alone := &Stack{Frames: []Frame{{Func: c, Kind: C2, Sure: Guessed}}}
	if alone.Settle(); len(alone.Frames) != 1 || alone.Frames[0].Sure != Certain {
		t.Errorf("%+v", alone.Frames)
	}
	stub := &Stack{Frames: []Frame{{Func: a, Kind: Stub, Sure: Guessed}, {Func: b, Kind: Inlined, Sure: Guessed},
		{Func: c, Kind: C2, Sure: Guessed}}}
	if stub.Settle(); len(stub.Frames) != 2 || stub.Frames[0].Func != a || stub.Frames[1].Func != c {
		t.Errorf("%+v", stub.Frames)
	}
	new(Stack).Settle()
}

// hot returns a stack of a compiled method, with inlined methods and a frame on top, leaf first.
func hot(sure Certainty, owner *Func, inlined ...*Func) *Stack {
	s := &Stack{}
	for _, f := range inlined {
		s.Frames = append(s.Frames, Frame{Func: f, Kind: Inlined, Sure: sure})
	}
	s.Frames = append(s.Frames, Frame{Func: owner, Kind: C2, Sure: sure}, Frame{Func: fnOf("main"), Kind: Interpreted})
	return s
}

func leavesOf(p *Profile) map[string]int64 {
	leaves := make(map[string]int64)
	p.Each(func(frames []Frame, n int64) { leaves[frames[len(frames)-1].Func.Name] += n })
	return leaves
}

// TestSettled: if a compiled method has many guesses, they count for that method, and others stay. The account has the
// guesses of the method with the most. Copying, taking stacks, and renaming a thread do not change that.
func TestSettled(t *testing.T) {
	crunch, mix, cold, get, stub := fnOf("crunch"), fnOf("mix"), fnOf("cold"), fnOf("get"), fnOf("stub")
	p := New()
	p.Add("[old]", hot(Guessed, crunch, mix), 30)
	p.Add("[old]", hot(Likely, crunch, mix), 5)
	p.Add("[old]", hot(Certain, crunch), 20)
	onTop := hot(Guessed, crunch, get)
	onTop.Frames = append([]Frame{{Func: stub, Kind: Stub, Sure: Guessed}}, onTop.Frames...)
	p.Add("[old]", onTop, 2)
	p.Add("[old]", hot(Guessed, cold, get), 4)
	p.Add("[new]", hot(Certain, cold), 39)
	p.Relabel("[old]", "[new]")
	want := map[string]int64{"crunch": 50, "mix": 5, "stub": 2, "get": 4, "cold": 39}
	check := func(name string, p *Profile) {
		t.Helper()
		s := p.Settled()
		got := leavesOf(s)
		for leaf, n := range want {
			if got[leaf] != n {
				t.Errorf("%s: %s has %d, not %d", name, leaf, got[leaf], n)
			}
		}
		if len(got) != len(want) || s.Unnamed != 32 {
			t.Errorf("%s: %v, %d moved", name, got, s.Unnamed)
		}
		var under []string
		s.Each(func(frames []Frame, _ int64) {
			if frames[len(frames)-1].Func == stub {
				under = append(under, frames[len(frames)-2].Func.Name)
			}
		})
		if !slices.Equal(under, []string{"crunch"}) {
			t.Errorf("%s: the stub stands on %v", name, under)
		}
	}
	check("as it is", p)
	check("a copy", p.Copy())
	if before := leavesOf(p); before["mix"] != 35 {
		t.Errorf("the profile itself has %v", before)
	}
	if sum := p.Summary(); sum.LeafGuessed != 36 || sum.LeafGuessedMost != 32 || sum.Samples != 100 {
		t.Errorf("the account: %+v", sum)
	}
	taken := p.TakeStacks()
	check("taken", taken)
	if p.Settled() != p || p.Summary().LeafGuessedMost != 32 {
		t.Errorf("what is left: %+v", p.Summary())
	}
	sure := New()
	sure.Add("", hot(Guessed, crunch, mix), 9)
	sure.Add("", hot(Certain, crunch, mix), 91)
	if sure.Settled() != sure {
		t.Error("few guesses are moved")
	}
}
