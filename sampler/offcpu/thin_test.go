//go:build linux

package offcpu

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestThinning: if goprof falls behind, or uses too much CPU time, it thins out ever longer waits, up to a bound. When
// there is little to do again, each wait counts.
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

// TestThinnedSums: whatever the limit is, the time and number of waits are on average those of all waits. The same
// holds for the waits of each length in a thread that has waits of several lengths, in any order.
func TestThinnedSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lengths := []time.Duration{10 * time.Microsecond, 70 * time.Microsecond, time.Millisecond, 15 * time.Millisecond,
		30 * time.Millisecond}
	orders := map[string]func(i int) int{
		"alone, each of them": nil,
		"by turns":            func(i int) int { return i % len(lengths) },
		"by lot":              func(int) int { return rng.IntN(len(lengths)) },
		"many of each":        func(i int) int { return i / 1000 % len(lengths) },
	}
	for _, limit := range []time.Duration{0, 100 * time.Microsecond, time.Millisecond, 20 * time.Millisecond} {
		for name, order := range orders {
			rounds := 1
			if order == nil {
				rounds = len(lengths)
			}
			for round := range rounds {
				if orders[name] == nil {
					order = func(int) int { return round }
				}
				sumThinned(t, rng, thinning{limit: limit}, lengths, order, name)
			}
		}
	}
}

func sumThinned(t *testing.T, rng *rand.Rand, l thinning, lengths []time.Duration, order func(i int) int, name string) {
	t.Helper()
	all, waits, counted := make([]float64, len(lengths)), make([]float64, len(lengths)), make([]float64, len(lengths))
	of := make([]time.Duration, len(lengths))
	var owed, sum time.Duration
	for i := range 200_000 {
		k := order(i)
		n, d := l.standsFor(lengths[k], rng.Float64(), &owed)
		if n > 0 {
			counted[k]++
		}
		all[k], waits[k], of[k], sum = all[k]+1, waits[k]+float64(n), of[k]+d, sum+lengths[k]-d
	}
	if sum != owed {
		t.Errorf("limit %v, %s: %v is not counted, and %v is owed", l.limit, name, sum, owed)
	}
	for k, length := range lengths {
		if all[k] == 0 {
			continue
		}
		// Each wait that counts stands for 1/p: its variance is that of drawing with probability p. What the wait takes
		// over from others makes the variance at most twice as large.
		p := min(1, float64(length)/float64(max(l.limit, 1)))
		tolerance := 5 * math.Sqrt((1-p)/p/all[k])
		if got := waits[k] / all[k]; math.Abs(got-1) > tolerance+1e-9 {
			t.Errorf("limit %v, %s, waits of %v: %.3f as many", l.limit, name, length, got)
		}
		if got := float64(of[k]) / (all[k] * float64(length)); math.Abs(got-1) > 1.5*tolerance+1e-9 {
			t.Errorf("limit %v, %s, waits of %v: %.3f of their time", l.limit, name, length, got)
		}
		if want := p * all[k]; math.Abs(counted[k]-want) > 5*math.Sqrt(want)+1 {
			t.Errorf("limit %v, %s, waits of %v: %.0f of %.0f count", l.limit, name, length, counted[k], all[k])
		}
	}
}

// TestThinnedThread: the time of a thread is off by about one limit, however long it waits, and whatever limits there
// were.
func TestThinnedThread(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const threads, waits = 2000, 5000
	squares, sum := 0.0, 0.0
	for range threads {
		var l thinning
		var owed time.Duration
		for i := range waits {
			if i%500 == 0 {
				l.limit = 100 * time.Millisecond >> rng.IntN(4)
			}
			if i >= waits-500 {
				l.limit = 50 * time.Millisecond
			}
			l.standsFor(15*time.Millisecond+time.Duration(rng.IntN(5))*time.Millisecond, rng.Float64(), &owed)
		}
		off := float64(owed) / float64(l.limit)
		squares, sum = squares+off*off, sum+off
	}
	if root := math.Sqrt(squares / threads); root > 1.2 || math.Abs(sum/threads) > 0.2 {
		t.Errorf("off by %.2f limits, %.2f in the mean", root, sum/threads)
	}
}
