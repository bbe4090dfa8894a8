package heat

import (
	"cmp"
	"slices"
)

const (
	// maxHeld bounds the entries that are held while samples are read: 24 bytes each.
	maxHeld = 1 << 22
	// maxEntries bounds those of a page: some three bytes each.
	maxEntries = 1_300_000
)

// entry is what was seen in some cells in one lane and one stack. Its weight is spread evenly over the cells.
type entry struct {
	cell, cells uint32
	lane, node  int32
	weight      int64
}

// entries are what a page has of samples. They are added in any order.
type entries struct {
	grid grid
	list []entry
	most int // that are held
}

func (e *entries) add(one entry) {
	if len(e.list) >= e.most {
		e.merge()
		for len(e.list) > e.most/2 {
			e.coarsen()
		}
	}
	e.list = append(e.list, one)
}

// bound leaves at most so many entries.
func (e *entries) bound(most int) {
	e.merge()
	for len(e.list) > most && e.grid.columns > 1 {
		e.coarsen()
	}
}

// merge sorts the entries, and makes those one that differ in nothing but their weight.
func (e *entries) merge() {
	slices.SortFunc(e.list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.cell, b.cell), cmp.Compare(a.lane, b.lane), cmp.Compare(a.node, b.node),
			cmp.Compare(a.cells, b.cells))
	})
	kept := e.list[:0]
	for _, one := range e.list {
		if n := len(kept); n > 0 {
			last := &kept[n-1]
			if last.cell == one.cell && last.cells == one.cells && last.lane == one.lane && last.node == one.node {
				last.weight += one.weight
				continue
			}
		}
		kept = append(kept, one)
	}
	e.list = kept
}

// coarsen makes the cells longer.
func (e *entries) coarsen() {
	by := e.grid.coarser()
	e.grid.coarsen(by)
	most := uint32(e.grid.cells())
	for i := range e.list {
		one := &e.list[i]
		first, end := one.cell/by, (one.cell+one.cells)/by
		if one.cells > 1 { // as grid.span has it
			first = (one.cell + by/2) / by
			end = (one.cell + one.cells + by/2) / by
		}
		one.cell, one.cells = min(first, most-1), 1
		if end > first+1 {
			one.cells = min(end, most) - one.cell
		}
	}
	e.merge()
}
