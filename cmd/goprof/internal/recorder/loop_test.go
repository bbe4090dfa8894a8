//go:build linux

package recorder

import (
	"testing"
	"time"
)

// TestLoopEnds: a loop with --duration records no file without an end, however late it comes to its next file.
func TestLoopEnds(t *testing.T) {
	o := Options{Duration: 5 * time.Second, Loop: 2 * time.Second}
	for _, c := range []struct {
		spent, want time.Duration
		over        bool
	}{
		{0, 2 * time.Second, false}, {4 * time.Second, time.Second, false},
		{5 * time.Second, 1, true}, {time.Minute, 1, true},
	} {
		if got, over := o.lap(c.spent), o.over(c.spent); got != c.want || over != c.over {
			t.Errorf("after %v: %v, over %v", c.spent, got, over)
		}
	}
	o.Duration = 0
	if got, over := o.lap(time.Hour), o.over(time.Hour); got != 2*time.Second || over {
		t.Errorf("without an end: %v, over %v", got, over)
	}
}
