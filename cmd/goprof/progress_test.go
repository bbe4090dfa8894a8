//go:build linux

package main

import (
	"testing"
	"time"

	"goprof/profile"
)

func TestProgressLine(t *testing.T) {
	sum := func(samples, truncated, lost int64, passed time.Duration) profile.Summary {
		return profile.Summary{Samples: samples, Truncated: truncated, Lost: lost, Meta: profile.Meta{Duration: passed}}
	}
	for _, c := range []struct {
		of   time.Duration
		sums []profile.Summary
		want string
	}{
		{0, nil, "0s  0 samples  (Ctrl-C ends and writes)"},
		{30 * time.Second, []profile.Summary{sum(1234, 0, 0, 12300*time.Millisecond)},
			"12s of 30s  1234 samples  (Ctrl-C ends and writes)"},
		{0, []profile.Summary{sum(100, 2, 0, time.Second), sum(50, 1, 4, 2*time.Second)},
			"2s  150 samples  3 truncated  4 lost  (Ctrl-C ends and writes)"},
	} {
		if got := progressLine(c.of, c.sums); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
