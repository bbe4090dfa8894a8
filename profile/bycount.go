package profile

import (
	"cmp"
	"maps"
	"slices"
	"sort"
)

// ByCount returns the keys with the largest counts first, and keys with equal counts in the order of their names.
func ByCount[N cmp.Ordered](counts map[string]N) []string {
	keys := slices.Sorted(maps.Keys(counts))
	sort.SliceStable(keys, func(i, j int) bool { return counts[keys[i]] > counts[keys[j]] })
	return keys
}
