//go:build linux

package sampler

import "testing"

// TestLongerInterval: an interval grows by what the rate is too high, and whatever amounts the target says, it does not
// become none: each hit would be a sample.
func TestLongerInterval(t *testing.T) {
	for _, c := range []struct {
		name              string
		now, hits, amount uint64
		rate              float64
		want              uint64
	}{
		{"twice too often", 1, 1000, 1000, 8000, 3},
		{"of a usual amount", 512 << 10, 10, 10 << 20, 4001, 2 << 20},
		{"as long as can be", maxInterval, 1, 1, 1e6, maxInterval},
		{"malloc(-1)", 512 << 10, 1, 1<<64 - 1, 8000, maxInterval},
		{"a sum that has overflown", 1, 4, 1 << 63, 7999, maxInterval},
		{"a rate that cannot be", 1, 1, 1, 1e30, maxInterval},
	} {
		if got := longerInterval(c.now, c.hits, c.amount, c.rate); got != c.want {
			t.Errorf("%s: %d, not %d", c.name, got, c.want)
		}
	}
}
