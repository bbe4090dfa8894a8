package profile

import "testing"

func TestFingerprint(t *testing.T) {
	a, b := &Func{Name: "a"}, &Func{Name: "b"}
	one := Frame{Func: a, Kind: C2, Line: 1, BCI: 2}
	stacks := []*Stack{nil, {}, {Frames: []Frame{one}}, {Frames: []Frame{one}, Truncated: NotCode},
		{Frames: []Frame{{Func: b, Kind: C2, Line: 1, BCI: 2}}}, {Frames: []Frame{{Func: a, Kind: C1, Line: 1, BCI: 2}}},
		{Frames: []Frame{one, one}}, {Frames: []Frame{one, {Func: b}}}, {Frames: []Frame{{Func: b}, one}},
		{Frames: []Frame{{Func: a, Kind: C2, Line: 1, BCI: 2, Sure: Guessed}}},
		{Frames: []Frame{{Func: a, Kind: C2, Line: 2, BCI: 2}}},
	}
	p := NewFingerprinter()
	seen := map[Fingerprint]int{}
	for i, s := range stacks {
		if j, known := seen[p.Of(s)]; known {
			t.Errorf("stacks %d and %d are the same", j, i)
		}
		seen[p.Of(s)] = i
	}
}
