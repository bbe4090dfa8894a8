//go:build linux

package ptrace

import (
	"testing"
	"time"
)

// TestChances: three reads that were given up within a minute are too many. Three reads that lie further apart are
// not.
func TestChances(t *testing.T) {
	const start = int64(5 * time.Second) // the machine has just booted
	for _, row := range []struct {
		name  string
		lost  []time.Duration
		spent map[time.Duration]bool // by the time of the question: whether the chances are spent
	}{
		{"none", nil, map[time.Duration]bool{0: false}},
		{"two at once", []time.Duration{0, 0}, map[time.Duration]bool{0: false, time.Minute: false}},
		{"three at once", []time.Duration{0, 0, 0},
			map[time.Duration]bool{0: true, 59 * time.Second: true, time.Minute: false}},
		{"a minute apart", []time.Duration{0, time.Minute, 2 * time.Minute}, map[time.Duration]bool{2 * time.Minute: false}},
		{"the first has expired", []time.Duration{0, 50 * time.Second, 70 * time.Second},
			map[time.Duration]bool{70 * time.Second: false}},
		{"silent again after a minute", []time.Duration{0, 1, 2, time.Minute},
			map[time.Duration]bool{time.Minute: true, time.Minute + 1: false}},
	} {
		var c Chances
		for _, at := range row.lost {
			c.Lose(start + int64(at))
		}
		for at, want := range row.spent {
			if got := c.Spent(start + int64(at)); got != want {
				t.Errorf("%s: spent after %v: %v", row.name, at, got)
			}
		}
	}
}
