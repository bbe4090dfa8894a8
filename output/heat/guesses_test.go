package heat

import (
	"testing"
	"time"

	"goprof/profile"
)

// TestGuessedLeaves: if a compiled method has many guesses, the page counts them for that method.
func TestGuessedLeaves(t *testing.T) {
	n := names{}
	f := timed(profile.Meta{Mode: profile.ModeCPU, Start: begin, Duration: time.Second})
	for i := range 100 {
		s := n.stack("Pek.crunch", "Pek.mix")
		s.Frames[0].Kind = profile.Inlined
		if i < 30 {
			s.Frames[0].Sure = profile.Guessed
		}
		f.samples = append(f.samples, profile.Sample{At: at(time.Duration(i) * time.Millisecond), Stack: s})
	}
	guesses := map[string]int64{}
	for _, e := range decode(t, draw(t, f, Options{})).entries {
		if e.guess {
			guesses[e.stack] += e.weight
		}
	}
	if len(guesses) != 0 {
		t.Errorf("a method that stands for guesses is a guess: %v", guesses)
	}
	info := f.Info()
	h, err := read(f, &info, false)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, node := range h.stacks.tree.Nodes[1:] {
		got[h.stacks.tree.Labels[node.Name].Text] += node.Self
	}
	if got["Pek.crunch"] != 30 || got["Pek.mix"] != 70 {
		t.Errorf("%v", got)
	}
}

// TestGuessesAreMarked: if there are few guesses, the page marks them.
func TestGuessesAreMarked(t *testing.T) {
	n := names{}
	f := timed(profile.Meta{Mode: profile.ModeCPU, Start: begin, Duration: time.Second})
	for i := range 100 {
		s := n.stack("Pek.crunch", "Pek.mix")
		s.Frames[0].Kind = profile.Inlined
		if i < 5 {
			s.Frames[0].Sure = profile.Guessed
		}
		f.samples = append(f.samples, profile.Sample{At: at(time.Duration(i) * time.Millisecond), Stack: s})
	}
	guessed, sure := int64(0), int64(0)
	for _, e := range decode(t, draw(t, f, Options{})).entries {
		if e.stack != "Pek.crunch;Pek.mix" {
			t.Errorf("%+v", e)
		}
		if e.guess {
			guessed += e.weight
		} else {
			sure += e.weight
		}
	}
	if guessed != 5 || sure != 95 {
		t.Errorf("%d guessed, %d sure", guessed, sure)
	}
}
