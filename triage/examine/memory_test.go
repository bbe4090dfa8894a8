//go:build linux

package examine

import (
	"testing"
	"time"
)

// TestMemoryDue: the last turn of a look reads memory, also if a slow dump took the time of others.
func TestMemoryDue(t *testing.T) {
	const all = 9 * time.Second
	for name, c := range map[string]struct {
		turns []time.Duration // the last one ends the look
		want  int
	}{
		"each second":     {[]time.Duration{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 4},
		"a slow dump":     {[]time.Duration{0, 1, 2, 3, 20}, 3},
		"nothing but two": {[]time.Duration{0, 20}, 2},
	} {
		read, last := 0, false
		for _, passed := range c.turns {
			if last = memoryDue(read, passed*time.Second, all); last {
				read++
			}
		}
		if read != c.want || !last {
			t.Errorf("%s: %d readings, want %d; at the end: %v", name, read, c.want, last)
		}
	}
}
