package vmstructs

import "math/bits"

// SiteIndex lists the records of each site. It is compact, because with a larger table, most of the time for a new
// nmethod was spent on memory.
type SiteIndex struct {
	heads []int32 // a power of two; by hash of the site: the index in list of its last record plus 1
	list  []siteRecord
}

type siteRecord struct {
	site Site
	at   uint32
	next int32 // as in heads
}

// NewSiteIndex makes an index with room for a number of records. Further records are left out.
func NewSiteIndex(records int) SiteIndex {
	size := 8
	for size < records {
		size *= 2
	}
	return SiteIndex{heads: make([]int32, size), list: make([]siteRecord, 0, records)}
}

func (x *SiteIndex) head(s Site) *int32 {
	n, _ := bits.Mul64(uint64(s)*siteSeed, uint64(len(x.heads)))
	return &x.heads[n]
}

// Add adds a record of a site, by its offset in the code.
func (x *SiteIndex) Add(s Site, at uint32) {
	if x.IsFull() {
		return
	}
	head := x.head(s)
	x.list = append(x.list, siteRecord{s, at, *head})
	*head = int32(len(x.list))
}

// IsFull reports whether records may have been left out.
func (x *SiteIndex) IsFull() bool { return len(x.list) == cap(x.list) }

func (x *SiteIndex) Len() int { return len(x.list) }

// Each calls each with the offsets of the records of a site, the last one first, until each returns false.
func (x *SiteIndex) Each(s Site, each func(at uint32) bool) {
	if len(x.list) == 0 {
		return
	}
	for k := *x.head(s); k != 0; k = x.list[k-1].next {
		if r := &x.list[k-1]; r.site == s && !each(r.at) {
			return
		}
	}
}

func (x *SiteIndex) Size() int { return 4*len(x.heads) + 16*cap(x.list) }
