package vmstructs

import (
	"math/bits"
	"math/rand/v2"
)

// SiteTable maps sites to numbers. It is a hash table with open addressing, which is faster than a map: sites are
// already hashes. The tree of a large method has thousands of sites.
type SiteTable struct {
	slots []siteSlot // a power of two; site 0 marks a free slot
	n     int
}

type siteSlot struct {
	site  Site
	value uint64
}

// NewSiteTable makes a table with room for a number of sites. The table grows if necessary.
func NewSiteTable(sites int) SiteTable {
	size := 8
	for size < 2*sites {
		size *= 2
	}
	return SiteTable{slots: make([]siteSlot, size)}
}

// siteSeed is random, so that no target can choose sites that all belong to the same slot.
var siteSeed = rand.Uint64() | 1

// slot finds the slot of a site, or the free slot where it belongs.
func (t *SiteTable) slot(s Site) *siteSlot {
	mask := uint64(len(t.slots) - 1)
	begin, _ := bits.Mul64(uint64(s)*siteSeed, uint64(len(t.slots)))
	for i := begin; ; i = (i + 1) & mask {
		if slot := &t.slots[i]; slot.site == s || slot.site == 0 {
			return slot
		}
	}
}

// Get returns the number of a site, 0 if it has none.
func (t *SiteTable) Get(s Site) (value uint64, ok bool) {
	if len(t.slots) == 0 || s == 0 {
		return 0, false
	}
	slot := t.slot(s)
	return slot.value, slot.site != 0
}

// Set sets the number of a site. No site is 0.
func (t *SiteTable) Set(s Site, value uint64) { t.Swap(s, value) }

// Swap is like Set, but returns the previous number of the site, 0 if it had none.
func (t *SiteTable) Swap(s Site, value uint64) (before uint64) {
	if s == 0 {
		return 0
	}
	if 2*t.n >= len(t.slots) {
		old := t.slots
		*t = NewSiteTable(t.n + 8)
		for _, o := range old {
			t.Set(o.site, o.value)
		}
	}
	slot := t.slot(s)
	if slot.site == 0 {
		t.n++
	}
	before = slot.value
	*slot = siteSlot{s, value}
	return before
}

// Values calls each with each number, in no particular order, until each returns false.
func (t *SiteTable) Values(each func(value uint64) bool) {
	for i := range t.slots {
		if t.slots[i].site != 0 && !each(t.slots[i].value) {
			return
		}
	}
}

func (t *SiteTable) Size() int { return 16 * len(t.slots) }
