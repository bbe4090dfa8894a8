package vmstructs

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSiteIndex: an index and a map of lists return the same after the same calls. Records without room are left out.
func TestSiteIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var none SiteIndex
	none.Each(7, func(uint32) bool { t.Error("an empty index has a site"); return false })
	const room = 1000
	x, want := NewSiteIndex(room), map[Site][]uint32{}
	for n := range uint32(room + 10) {
		if x.IsFull() != (n >= room) {
			t.Fatalf("%d of %d, full: %v", n, room, x.IsFull())
		}
		s := Site(1 + r.Uint64N(300)<<(40*r.Uint64N(2)))
		if x.Add(s, n); n < room {
			want[s] = append(want[s], n)
		}
	}
	for s, at := range want {
		var got []uint32
		x.Each(s, func(at uint32) bool { got = append(got, at); return true })
		if slices.Reverse(got); !slices.Equal(got, at) {
			t.Fatalf("site %#x has %d, not %d", s, got, at)
		}
		n := 0
		if x.Each(s, func(uint32) bool { n++; return false }); n != 1 {
			t.Fatalf("%d records, not the first alone", n)
		}
	}
	x.Each(1<<63, func(uint32) bool { t.Error("a site that is not there"); return false })
}
