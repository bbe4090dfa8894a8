//go:build linux

package visit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMomentsDoNotKeepApart: the time until the next visit is independent of the visit before, as if each moment had
// the same chance. And still the number of visits is what was asked for.
func TestMomentsDoNotKeepApart(t *testing.T) {
	const step, rounds = 1000, 2000
	m := moments{rng: rand.New(rand.NewPCG(1, 2))}
	m.begin(0, step)
	last, soon, n := int64(0), 0, 0
	for m.start < rounds*momentsInRound*step {
		at := m.at()
		if at < last {
			t.Fatalf("moment %d at %d comes after one at %d", n, at, last)
		}
		if n > 0 && at-last < step/4 {
			soon++
		}
		last = at
		n++
		m.skip()
	}
	if n != rounds*momentsInRound {
		t.Errorf("%d moments in %d rounds of %d", n, rounds, momentsInRound)
	}
	// If moments have no memory, 1-exp(-1/4) of them follow within a quarter of the mean gap.
	if got, want := float64(soon)/float64(n), 1-math.Exp(-0.25); math.Abs(got-want) > 0.015 {
		t.Errorf("%.3f of the moments follow within a quarter of the mean gap, not %.3f", got, want)
	}
}

// TestMomentsMissed: moments that have passed long ago are counted and left out, also if there are more of them than
// could be drawn.
func TestMomentsMissed(t *testing.T) {
	const step = 1000
	for _, n := range []int64{20, 40, 1000, 1e14} { // to draw the last number one by one would take months
		m := moments{rng: rand.New(rand.NewPCG(5, 6))}
		m.begin(0, step)
		away := n * step
		missed := m.catchUp(away)
		if m.at() < away-m.patience() || m.at() > away+2*momentsInRound*step ||
			math.Abs(float64(missed-n)) > 2*momentsInRound {
			t.Errorf("after %d intervals away %d were missed, and the next is %d before now", n, missed, away-m.at())
		}
	}
}
