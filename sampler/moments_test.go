//go:build linux

package sampler

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMomentsDoNotKeepApart: how soon the next visit comes says nothing of the one before, as if each moment of time
// had the same chance; and still the number of visits is what was asked for.
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
	// Of moments without memory 1-exp(-1/4) follow within a quarter of the mean gap.
	if got, want := float64(soon)/float64(n), 1-math.Exp(-0.25); math.Abs(got-want) > 0.015 {
		t.Errorf("%.3f of the moments follow within a quarter of the mean gap, not %.3f", got, want)
	}
}

// TestMomentsLeaveOut: no moment falls into time that is left out, and on two CPUs half of those that would have are
// made up for.
func TestMomentsLeaveOut(t *testing.T) {
	const step, took, cpus = 1000, 100, 2
	m := moments{rng: rand.New(rand.NewPCG(3, 4))}
	m.begin(0, step)
	visits := 0
	for now := int64(0); now < 1e8; visits++ {
		now = m.at() + took
		m.leaveOut(took, cpus)
		if missed := m.advance(now); missed != 0 {
			t.Fatalf("%d moments missed", missed)
		}
		if m.at() < now {
			t.Fatalf("the next moment, %d, lies in the visit that ended at %d", m.at(), now)
		}
	}
	if want := 1e8 / (step + took/cpus); math.Abs(float64(visits)-want) > want/100 {
		t.Errorf("%d visits, want %.0f", visits, want)
	}
}

// TestMomentsMissed: what has passed long ago is counted and left out, also where it is more than could be drawn.
func TestMomentsMissed(t *testing.T) {
	const step = 1000
	for _, n := range []int64{20, 40, 1000, 1e14} { // the last one would take months one by one
		m := moments{rng: rand.New(rand.NewPCG(5, 6))}
		m.begin(0, step)
		away := n * step
		missed := m.advance(away)
		if m.at() < away-m.patience() || m.at() > away+2*momentsInRound*step ||
			math.Abs(float64(missed-n)) > 2*momentsInRound {
			t.Errorf("after %d intervals away %d were missed, and the next is %d before now", n, missed, away-m.at())
		}
	}
}
