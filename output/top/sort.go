package top

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// Order is the key by which threads are sorted.
type Order int

const (
	ByCPU   Order = iota // the largest CPU time first
	ByAlloc              // the largest allocation first
	ByName
	ByState
)

var orderNames = [...]string{ByCPU: "cpu", ByAlloc: "alloc", ByName: "name", ByState: "state"}

func (o Order) String() string { return orderNames[o] }

// sortedThreads returns a sorted copy. Threads with equal keys are sorted by CPU, and then by number, so that idle ones
// do not change places each second.
func sortedThreads(threads []Thread, by Order, reversed bool) []Thread {
	sorted := slices.Clone(threads)
	sort.Slice(sorted, func(i, j int) bool {
		a, b := &sorted[i], &sorted[j]
		first := compareThreads(a, b, by)
		if reversed {
			first = -first
		}
		return cmp.Or(first, cmp.Compare(b.CPU, a.CPU), cmp.Compare(a.TID, b.TID)) < 0
	})
	return sorted
}

func compareThreads(a, b *Thread, by Order) int {
	switch by {
	case ByAlloc:
		return cmp.Compare(b.Alloc, a.Alloc)
	case ByName:
		return strings.Compare(a.Name, b.Name)
	case ByState:
		return strings.Compare(a.State, b.State)
	}
	return cmp.Compare(b.CPU, a.CPU)
}
