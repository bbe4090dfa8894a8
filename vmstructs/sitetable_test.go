package vmstructs

import (
	"math/rand/v2"
	"testing"
)

// TestSiteTable: a table and a map return the same after the same calls, also if sites have the same slot.
func TestSiteTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var table SiteTable
	if _, ok := table.Get(7); ok {
		t.Error("an empty table has a site")
	}
	want := map[Site]uint64{}
	for range 3000 {
		s := Site(1 + r.Uint64N(4000)<<(8*r.Uint64N(2)))
		if v, ok := table.Get(s); v != want[s] || ok != (want[s] != 0) {
			t.Fatalf("site %#x has %d (%v), not %d", s, v, ok, want[s])
		}
		want[s] = 1 + r.Uint64N(1000)
		table.Set(s, want[s])
	}
	n := 0
	table.Values(func(uint64) bool { n++; return true })
	if n != len(want) || table.n != len(want) {
		t.Errorf("%d values of %d", n, len(want))
	}
	table.Set(0, 1)
	if _, ok := table.Get(0); ok {
		t.Error("0 is no site")
	}
}

// TestSiteTableSpreads: sites with the same low bits or the same high bits are spread over the slots.
func TestSiteTableSpreads(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, shift := range []int{20, 0} {
		table := NewSiteTable(4096)
		for range 4000 {
			table.Set(Site(1+r.Uint64N(1<<40))<<shift, 1)
		}
		run, longest := 0, 0
		for _, slot := range table.slots {
			if run++; slot.site == 0 {
				run = 0
			}
			longest = max(longest, run)
		}
		if longest > 400 {
			t.Errorf("shift %d: %d slots in a row are taken", shift, longest)
		}
	}
}
