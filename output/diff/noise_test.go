package diff

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestLevel: if all items together vary slowly, chance makes the long blocks count for one item in ten, or in twenty.
// If they do not, the level is corrected for the number of items.
func TestLevel(t *testing.T) {
	for _, c := range []struct {
		name        string
		slow, items float64
		chance      float64
		want        float64
	}{
		{"many items", 1, 50, 0.10, 0.01},
		{"many items, of the longest blocks", 1, 50, 0.05, 0.01},
		{"just not slowly", 1.19, 100, 0.10, 0.005},
		{"slowly", slowly, 100, 0.10, 0.10},
		{"slowly, of the longest blocks", 3, 100, 0.05, 0.05},
		{"few items need no correction", 1, 4, 0.10, 0.10},
		{"one item", 1, 1, 0.05, 0.05},
		{"no item that is large enough", 1, 0, 0.10, 0.10},
	} {
		n := noise{slow: c.slow, items: c.items}
		if got := n.level(c.chance); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestLevelOfIndependent: if samples are independent, the long blocks of no item show more than the short ones. So if
// an item's long blocks count, that is nearly always by chance.
func TestLevelOfIndependent(t *testing.T) {
	p, rng := newProgram(), rand.New(rand.NewPCG(8, 9))
	const pairs = 10
	by, items := 0, 0
	for range pairs {
		r := compare(t, models[0].record(p, 10_000, rng), models[0].record(p, 10_000, rng), Options{By: "method"})
		met := make(map[uint64]bool)
		for i := range r.evidence {
			e := &r.evidence[i]
			if met[e.item.prints] || !r.c.enough(e) {
				continue
			}
			met[e.item.prints] = true
			items++
			if e.df < blocks { // the shortest blocks of both sides have nearly twice as many degrees of freedom
				by++
			}
		}
	}
	t.Logf("long blocks count of %d items of %d, in %d comparisons", by, items, pairs)
	if by > int(2*2*rare*pairs) { // two levels; twice the number that chance gives
		t.Errorf("long blocks count of %d items by chance, in %d comparisons", by, pairs)
	}
}

// TestSlowOf: an item whose short blocks show more variance than others' misses more at the ends of blocks.
func TestSlowOf(t *testing.T) {
	for _, c := range []struct {
		name                string
		slow, excess, ratio float64
		want                float64
	}{
		{"as others", 1.1, 0.5, 2, 1.1},
		{"more than others", 1.1, 0.4, 5, 1.2},
		{"less than others, which none is taken to have", 1.1, 0.5, 1.25, 1.1},
		{"nothing is slow", 1, 0.5, 10, 1},
		{"looks are independent, so the item's excess is chance", 1.05, 0.02, 1.2, 1.05},
	} {
		n := noise{slow: c.slow, excess: c.excess}
		if got := n.slowOf(c.ratio); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestNoiseOfJobs: a thread's samples belong to one job after the other, so those of a handler come in bursts. The mean
// square of the bursts' lengths is 10.0 times the mean length. The noise of a handler is not estimated lower than that.
func TestNoiseOfJobs(t *testing.T) {
	p, rng := newProgram(), rand.New(rand.NewPCG(9, 77))
	m := model{threads: 4, mean: 5, timed: true, jobs: true}
	const pairs = 6
	sum, handlers := 0.0, 0.0
	for range pairs {
		r := compare(t, m.record(p, 10_000, rng), m.record(p, 10_000, rng), Options{By: "method"})
		for i := range r.evidence {
			e := &r.evidence[i]
			if r.sortOf(e.item.number) == OfTotal && strings.HasPrefix(r.change(e, OfTotal).Name, "Handler") {
				sum += e.variance[After] / r.c.independent(e, After)
				handlers++
			}
		}
	}
	if mean := sum / handlers; !(mean > 9.3 && mean < 11) {
		t.Errorf("%v handlers have a mean inflation of %.2f", handlers, mean)
	}
}
