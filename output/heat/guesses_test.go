package heat

import (
	"testing"
	"time"

	"goprof/profile"
)

// TestGuessedLeaves: where a compiled method has many guesses, the page counts them for that method.
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
