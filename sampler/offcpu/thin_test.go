//go:build linux

package offcpu

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestThinning: where goprof falls behind, or uses too much, ever longer waits are thinned out, up to a bound. Where it
// is calm, each wait counts again.
func TestThinning(t *testing.T) {
	var l thinning
	now, used := int64(1), int64(0)
	pass := func(share int64, behind bool) {
		now += thinEvery
		used += thinEvery * share / 100
		l.fit(now, behind, used)
	}
	l.fit(now, true, used) // the first time there is nothing to compare
	if pass(30, false); l.limit != 0 {
		t.Fatalf("within its bounds: %+v", l)
	}
	if pass(30, true); l.limit != thinFirst {
		t.Errorf("behind: %+v", l)
	}
	for range 30 {
		pass(41, false)
	}
	if l.limit != thinMost || l.longest != thinMost {
		t.Errorf("too much for long: %+v", l)
	}
	if pass(30, false); l.limit != thinMost {
		t.Errorf("neither too much nor calm: %+v", l)
	}
	for range 30 {
		pass(10, false)
	}
	if l.limit != 0 || l.longest != thinMost {
		t.Errorf("calm: %+v", l)
	}
}

// TestThinnedSums: whatever the limit, time and number of waits are those of all waits, in the mean.
func TestThinnedSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []time.Duration{0, 100 * time.Microsecond, time.Millisecond, 20 * time.Millisecond} {
		l := thinning{limit: limit}
		for _, length := range []time.Duration{10 * time.Microsecond, 70 * time.Microsecond, time.Millisecond,
			30 * time.Millisecond} {
			const all = 200_000
			var waits, counted int64
			var of time.Duration
			for range all {
				n, d := l.standsFor(length, rng.Float64())
				if n > 0 {
					counted++
				}
				waits, of = waits+n, of+d
			}
			// Each that counts stands for 1/p: its variance is that of drawing with probability p.
			p := min(1, float64(length)/float64(max(limit, 1)))
			tolerance := 5 * math.Sqrt((1-p)/p/all)
			if got := float64(waits) / all; math.Abs(got-1) > tolerance+1e-9 {
				t.Errorf("limit %v, waits of %v: %.3f as many", limit, length, got)
			}
			if got := float64(of) / float64(all*length); math.Abs(got-1) > tolerance+1e-9 {
				t.Errorf("limit %v, waits of %v: %.3f of their time", limit, length, got)
			}
			if want := p * all; math.Abs(float64(counted)-want) > 5*math.Sqrt(want)+1 {
				t.Errorf("limit %v, waits of %v: %d of %d count", limit, length, counted, all)
			}
		}
	}
}
