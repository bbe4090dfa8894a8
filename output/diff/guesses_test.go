package diff

import (
	"testing"
	"time"

	"goprof/profile"
)

// TestGuessedLeaves: in the next start a compiler decides differently, and other leaves are guesses. No such change is
// significant. A change that is larger than the effect of guesses is significant.
func TestGuessedLeaves(t *testing.T) {
	func1 := func(name string) *profile.Func { return &profile.Func{Name: name} }
	crunch, mix, other := func1("a.Pek.crunch"), func1("a.Pek.mix"), func1("a.Other.run")
	in := func(sure profile.Certainty, owner *profile.Func, inlined ...*profile.Func) *profile.Stack {
		s := &profile.Stack{}
		for _, f := range inlined {
			s.Frames = append(s.Frames, profile.Frame{Func: f, Kind: profile.Inlined, Sure: sure})
		}
		s.Frames = append(s.Frames, profile.Frame{Func: owner, Kind: profile.C2, Sure: sure})
		return s
	}
	const sure, guess = profile.Certain, profile.Guessed
	type part struct {
		of    *profile.Stack
		share int // in percent
	}
	record := func(parts ...part) *simulated {
		s := &simulated{timed: true}
		for i := range 10000 {
			at := i * 37 % 100
			for _, p := range parts {
				if at -= p.share; at < 0 {
					s.samples = append(s.samples, profile.Sample{Stack: p.of, Count: 1,
						At: profile.Instant{Ticks: int64(i) * int64(time.Millisecond)}})
					break
				}
			}
		}
		return s
	}
	mostly := part{in(sure, other), 40}
	for name, c := range map[string]struct {
		before, after []part
		changed       []string // methods by self
	}{
		"guesses fall otherwise": {[]part{mostly, {in(guess, crunch, mix), 30}, {in(sure, crunch), 30}},
			[]part{mostly, {in(guess, crunch), 30}, {in(sure, crunch), 30}}, nil},
		"more are guesses": {[]part{mostly, {in(sure, crunch, mix), 20}, {in(sure, crunch), 40}},
			[]part{mostly, {in(guess, crunch), 20}, {in(sure, crunch), 40}}, nil},
		"what was certain is a guess of another": {[]part{mostly, {in(sure, crunch), 60}},
			[]part{mostly, {in(guess, crunch, mix), 60}}, nil},
		"certain ones change": {[]part{mostly, {in(sure, crunch, mix), 20}, {in(sure, crunch), 40}},
			[]part{mostly, {in(sure, crunch, mix), 40}, {in(sure, crunch), 20}}, []string{crunch.Name, mix.Name}},
		"more than guesses may be": {[]part{mostly, {in(sure, crunch, mix), 5}, {in(guess, crunch), 5},
			{in(sure, crunch), 50}}, []part{mostly, {in(sure, crunch, mix), 45}, {in(guess, crunch), 5},
			{in(sure, crunch), 10}}, []string{crunch.Name, mix.Name}},
		"the compiled method itself": {[]part{{in(sure, other), 40}, {in(guess, crunch, mix), 60}},
			[]part{{in(sure, other), 60}, {in(guess, crunch), 40}}, []string{crunch.Name, other.Name}},
	} {
		cmp := New()
		for side, parts := range [][]part{c.before, c.after} {
			src := record(parts...)
			if err := cmp.AddSource(Side(side), src, Reading{}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := cmp.Compare(Options{By: "method"})
		if err != nil {
			t.Fatal(err)
		}
		changed := map[string]bool{}
		for _, ch := range r.Changes {
			if ch.Significant && ch.Of == OfSelf {
				changed[ch.Name] = true
			}
			if ch.Significant && len(c.changed) == 0 {
				t.Errorf("%s: %+v", name, ch)
			}
		}
		if len(changed) != len(c.changed) {
			t.Errorf("%s: changed: %v, not %v", name, changed, c.changed)
		}
	}
}
