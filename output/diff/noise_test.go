package diff

import (
	"math/rand/v2"
	"testing"
)

// TestLevel: chance lets long blocks count of one item in ten, or in twenty. Where not all items together vary slowly,
// that is corrected for the number of items.
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

// TestLevelOfIndependent: where samples are independent, long blocks tell of no item what short ones do not. So nearly
// all items whose long blocks count do so by chance.
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
			if e.df < blocks { // both sides' shortest blocks have nearly twice as many degrees of freedom
				by++
			}
		}
	}
	t.Logf("long blocks count of %d items of %d, in %d comparisons", by, items, pairs)
	if by > int(2*2*rare*pairs) { // two levels; twice as many as chance gives
		t.Errorf("long blocks count of %d items by chance, in %d comparisons", by, pairs)
	}
}
