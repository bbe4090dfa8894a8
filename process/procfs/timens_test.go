package procfs

import (
	"testing"
	"time"
)

func TestMonotonicOffset(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want time.Duration
		ok   bool
	}{
		"none":       {"monotonic           0         0\nboottime            0         0\n", 0, true},
		"ahead":      {"monotonic        7200 500000000\nboottime        7200 0\n", 2*time.Hour + time.Second/2, true},
		"behind":     {"monotonic         -10 250000000\nboottime 0 0\n", -10*time.Second + time.Second/4, true},
		"numbered":   {"1 3 0\n7 0 0\n", 3 * time.Second, true},
		"empty":      {"", 0, false},
		"too large":  {"monotonic 9223372036854775807 0\n", 0, false},
		"no number":  {"monotonic x 0\n", 0, false},
		"other only": {"boottime 5 5\n", 0, false},
	} {
		if got, ok := MonotonicOffset([]byte(c.text)); got != c.want || ok != c.ok {
			t.Errorf("%s: %v %v", name, got, ok)
		}
	}
}
