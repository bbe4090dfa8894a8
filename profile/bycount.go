package profile

import (
	"cmp"
	"maps"
	"slices"
)

// ByCount returns the keys with the largest counts first, and keys with equal counts in the order of their names.
func ByCount[N cmp.Ordered](counts map[string]N) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}
