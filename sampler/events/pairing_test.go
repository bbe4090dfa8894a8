//go:build linux

package events

import "testing"

// TestPairsAreBounded: calls are met no more once they have cost a program more than they may; free is met to the end.
func TestPairsAreBounded(t *testing.T) {
	const second = int64(1e9)
	for _, c := range []struct {
		name  string
		most  float64 // Config.MaxOverhead
		hits  uint64
		after int64 // ns
		stops bool
	}{
		{"a burst", 0, 40_000, second / 10, false},
		{"for long", 0, 1_000_000, 60 * second, false},
		{"too many", 0, 1_100_000, 60 * second, true},
		{"less permitted", 0.05, 400_000, 60 * second, true},
		{"more permitted", 2, 1_100_000, 60 * second, false},
	} {
		kept := NewKept()
		r := newEventRun(&Engine{list: []Event{{Pairing: &Pairing{Kept: kept}}, {}}})
		r.cfg.MaxOverhead, r.began = c.most, 5*second
		counts := &eventCounts{Hits: c.hits}
		r.probes = []eventProbe{{counts: counts}, {}, {frees: true}, {number: 1, counts: counts}}
		r.boundPairs(r.began + c.after)
		if got := kept.Stopped > 0; got != c.stops || got != r.isStopped(&r.probes[1]) {
			t.Errorf("%s: stopped is %v", c.name, got)
		}
		if r.isStopped(&r.probes[2]) || r.isStopped(&r.probes[3]) {
			t.Errorf("%s: free, or another event, is stopped", c.name)
		}
	}
}
