//go:build linux

package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestShift(t *testing.T) {
	for _, c := range []struct {
		what string
		d    []float64
		want estimate
	}{
		{"nothing", nil, estimate{math.NaN(), math.Inf(-1), math.Inf(1), 0}},
		{"too few to say", []float64{1, 2, 3}, estimate{2, math.Inf(-1), math.Inf(1), 3}},
		// The 8th or 9th of the 55 means from each end: for 10 pairs the critical value of the signed-rank statistic is
		// 8.
		{"one to ten", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, estimate{5.5, 3, 8, 10}},
		{"two wild ones", []float64{-1e9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1e9}, estimate{5.5, 1.5, 9, 12}},
	} {
		got := shift(c.d)
		if got.n != c.want.n || got.low != c.want.low || got.high != c.want.high ||
			!(got.at == c.want.at || math.IsNaN(got.at) && math.IsNaN(c.want.at)) {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	if s := spreadOf([]float64{5, 1, 4, 2, 3}); s != (spread{2, 3, 4}) {
		t.Errorf("%+v", s)
	}
	if s := spreadOf(nil); s != (spread{}) {
		t.Errorf("of nothing: %+v", s)
	}
	if s := spreadOf([]float64{7}); s != (spread{7, 7, 7}) {
		t.Errorf("of one: %+v", s)
	}
}

// TestRatios: each round has a ratio of its own, but for one in which the yardstick is nothing.
func TestRatios(t *testing.T) {
	if got := ratiosOf([]float64{4, 30, 9, 6}, []float64{2, 10, -1, 1}); got != "3.00 [2.50 4.50]" {
		t.Error(got)
	}
}

// Pauses of known lengths are planted among a machine's own gaps. Most of these gaps are shorter, and some are
// longer.
func TestQuantilesWithoutTheBaseline(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	own := func(n int) (g gaps) {
		for i := range n {
			g = append(g, 2000+rng.Int64N(3000))
			if i%50 == 0 {
				g = append(g, 1_000_000)
			}
		}
		slices.Sort(g)
		return g
	}
	planted := gaps{}
	for i := range int64(1000) {
		planted = append(planted, 20_000+i) // 20.000 to 20.999 us
	}
	with := append(own(2000), planted...)
	slices.Sort(with)
	p := &pauses{with: with, without: own(1000), scale: 2, stops: 1000}
	for q, want := range map[float64]float64{0.1: 20_100, 0.5: 20_500, 0.9: 20_900, 0.99: 20_990} {
		if got := p.quantile(q); math.Abs(got-want) > 2 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if got := p.lost(); math.Abs(got-20_500) > 200 {
		t.Errorf("%v ns lost for each stop, want 20,500", got)
	}
	both := pool([]*pauses{p, p})
	if both.stops != 2000 || both.scale != 2 || math.Abs(both.quantile(0.5)-20_500) > 2 {
		t.Errorf("pooled: %v stops, scale %v, p50 %v", both.stops, both.scale, both.quantile(0.5))
	}
	if got := (&pauses{without: own(10), scale: 1, stops: 5}).quantile(0.5); got != 0 {
		t.Errorf("no gaps: %v", got)
	}
}
