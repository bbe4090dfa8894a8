//go:build linux

package session

import (
	"testing"

	"goprof/profile"
)

// TestSureLeaf: only guessed frames are removed, down to the code into which they were inlined.
func TestSureLeaf(t *testing.T) {
	a, b, c := &profile.Func{Name: "a"}, &profile.Func{Name: "b"}, &profile.Func{Name: "c"}
	for sure, want := range map[profile.Certainty]int{profile.Certain: 4, profile.Likely: 4, profile.Guessed: 2} {
		s := &profile.Stack{Carrier: 3, Frames: []profile.Frame{{Func: a, Kind: profile.Inlined, Sure: sure},
			{Func: b, Kind: profile.Inlined},
			{Func: c, Kind: profile.C2}, {Func: a, Kind: profile.Inlined}}}
		sureLeaf(s)
		if len(s.Frames) != want || s.Carrier != want-1 ||
			want == 2 && (s.Frames[0].Func != c || s.Frames[0].Sure != profile.Certain) {
			t.Errorf("%v: %+v, carrier from %d", sure, s.Frames, s.Carrier)
		}
	}
	alone := &profile.Stack{Frames: []profile.Frame{{Func: c, Kind: profile.C2, Sure: profile.Guessed}}}
	if sureLeaf(alone); len(alone.Frames) != 1 {
		t.Errorf("%+v", alone.Frames)
	}
	stub := &profile.Stack{Frames: []profile.Frame{{Func: a, Kind: profile.Stub, Sure: profile.Guessed},
		{Func: b, Kind: profile.Inlined, Sure: profile.Guessed}, {Func: c, Kind: profile.C2, Sure: profile.Guessed}}}
	if sureLeaf(stub); len(stub.Frames) != 2 || stub.Frames[0].Func != a || stub.Frames[1].Func != c {
		t.Errorf("%+v", stub.Frames)
	}
	sureLeaf(new(profile.Stack))
}
