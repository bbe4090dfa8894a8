//go:build linux

package events

import (
	"slices"
	"testing"

	"goprof/arch/amd64"
)

// TestOldStays: the program that removes the old piece at realloc stays when probes of other calls are removed.
func TestOldStays(t *testing.T) {
	p := &Pairing{Kept: NewKept(), Begins: []Begin{{Probe: Probe{Offset: 1}, Size: 1},
		{Probe: Probe{Offset: 2}, Size: 2, Old: 1}}, Frees: []Probe{{Offset: 3}}}
	var calls, frees []uint64
	load := func(_ *probeCode, at []Probe, stays bool) error {
		to := &calls
		if stays {
			to = &frees
		}
		*to = append(*to, at[0].Offset)
		return nil
	}
	if err := p.programs(&Event{Pairing: p}, 1, amd64.CPU, 0, 0, load); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(calls, []uint64{1, 2}) || !slices.Equal(frees, []uint64{2, 3}) {
		t.Errorf("at calls %d, what stays %d", calls, frees)
	}
}

// TestPairsAreBounded: a probe is removed once its calls have cost a program more than they may. The probe of free
// stays until it alone has cost that much.
func TestPairsAreBounded(t *testing.T) {
	const second = int64(1e9)
	for _, c := range []struct {
		name  string
		most  float64 // Config.MaxOverhead
		hits  uint64
		frees uint64
		after int64 // ns
		stops bool
		ends  bool // free is met no more, a look later
	}{
		{"a burst", 0, 40_000, 0, second / 10, false, false},
		{"for long", 0, 1_000_000, 0, 60 * second, false, false},
		{"too many", 0, 1_100_000, 0, 60 * second, true, false},
		{"less permitted", 0.05, 400_000, 0, 60 * second, true, false},
		{"with free", 0, 1_000_000, 1_000_000, 60 * second, true, false},
		{"free alone", 0, 0, 13_000_000, 60 * second, true, true},
		{"more permitted", 2, 1_100_000, 0, 60 * second, false, false},
	} {
		kept := NewKept()
		r := newEventRun(&Engine{list: []Event{{Pairing: &Pairing{Kept: kept}}, {}}})
		r.cfg.MaxOverhead, r.began = c.most, 5*second
		counts := &eventCounts{Hits: c.hits, pairCounts: pairCounts{Frees: c.frees}}
		r.probes = []eventProbe{{counts: counts}, {}, {frees: true}, {number: 1, counts: counts}}
		r.boundPairs(r.began + c.after)
		if got := kept.Stopped > 0; got != c.stops || got != r.isStopped(&r.probes[1]) {
			t.Errorf("%s: stopped is %v", c.name, got)
		}
		if r.isStopped(&r.probes[2]) || r.isStopped(&r.probes[3]) {
			t.Errorf("%s: free, or another event, is stopped", c.name)
		}
		r.boundPairs(r.began + c.after)
		if r.isStopped(&r.probes[2]) != c.ends || counts.Paused > 0 != c.ends || r.isStopped(&r.probes[3]) {
			t.Errorf("%s: free is stopped: %v", c.name, !c.ends)
		}
	}
}
