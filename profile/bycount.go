package profile

import (
	"cmp"
	"maps"
	"slices"
	"sort"
)

// ByCount returns the keys sorted by count, the largest first. Keys with equal counts are sorted by name.
func ByCount[N cmp.Ordered](counts map[string]N) []string {
	keys := slices.Sorted(maps.Keys(counts))
	sort.SliceStable(keys, func(i, j int) bool { return counts[keys[i]] > counts[keys[j]] })
	return keys
}
