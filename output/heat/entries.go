package heat

import (
	"cmp"
	"slices"

	"goprof/output"
)

const (
	// maxHeld bounds the entries while samples are read, of 24 bytes each.
	maxHeld = 1 << 22
	// maxEntries bounds the entries of a page, of some three bytes each.
	maxEntries = 1_300_000
)

// entry is a weight in one lane and one stack. It is divided equally among some cells.
type entry struct {
	cell, cells uint32
	lane, node  int32 // node may have the mark guessed
	weight      int64
}

// guessed marks the node of an entry whose leaf is a guess. No tree has so many nodes.
const guessed = 1 << 30

// at returns the node without the mark.
func (a entry) at() int32 { return a.node &^ guessed }

// compare orders entries. Most entries differ in their cells, which are compared first, because a million entries are
// sorted.
func (a entry) compare(b entry) int {
	switch {
	case a.cell != b.cell:
		return cmp.Compare(a.cell, b.cell)
	case a.lane != b.lane:
		return cmp.Compare(a.lane, b.lane)
	case a.node != b.node:
		return cmp.Compare(a.node, b.node)
	}
	return cmp.Compare(a.cells, b.cells)
}

// entries are the samples of a page. They can be added in any order.
type entries struct {
	grid grid
	list []entry
	most int  // bound of held entries
	cut  bool // some entries are under a caller of the sampled frame
}

func (e *entries) add(one entry, tree *output.Tree) {
	if len(e.list) >= e.most {
		e.bound(e.most/2, tree)
	}
	e.list = append(e.list, one)
}

// bound reduces the entries to the number most. First, cells grow. If the whole recording is one cell, there are too
// many lanes and stacks: the stacks of the lightest entries are cut from the leaf on, each time twice as far.
func (e *entries) bound(most int, tree *output.Tree) {
	e.merge()
	for len(e.list) > most && e.grid.cells() > 1 {
		e.coarsen()
	}
	for frames := 1; len(e.list) > most && e.cutLeaves(most, frames, tree); frames *= 2 {
		e.cut = true
	}
}

// cutLeaves removes frames from the stacks of all entries except the heaviest ones, which fill half of the room. It
// returns false if no stack could be cut.
func (e *entries) cutLeaves(most, frames int, tree *output.Tree) (some bool) {
	slices.SortFunc(e.list, func(a, b entry) int { return cmp.Compare(b.weight, a.weight) })
	for i := most / 2; i < len(e.list); i++ {
		one := &e.list[i]
		for n := 0; n < frames && one.at() != 0; n++ {
			one.node = tree.Nodes[one.at()].Parent // a caller is not a guess
			some = true
		}
	}
	e.merge()
	return some
}

// merge sorts the entries, and joins those that only differ in weight.
func (e *entries) merge() {
	slices.SortFunc(e.list, entry.compare)
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

// coarsen reduces the number of entries by longer cells.
func (e *entries) coarsen() {
	by := e.grid.coarser()
	e.grid.coarsen(by)
	most := uint32(e.grid.cells())
	for i := range e.list {
		one := &e.list[i]
		first, end := one.cell/by, (one.cell+one.cells)/by
		if one.cells > 1 { // as in grid.span
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
