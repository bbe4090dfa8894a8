package ptrace

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHistogramAgainstSortedList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var all []int64
	for range 50000 {
		v := rng.Int64N(1 << rng.IntN(40))
		all = append(all, v)
		h.Add(v)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[min(int(q*float64(len(all))), len(all)-1)]
		got := int64(h.Quantile(q))
		if got < exact || got > exact+exact/16 {
			t.Errorf("q %v: %d, exactly %d", q, got, exact)
		}
	}
	if int64(h.Max()) != all[len(all)-1] || h.Count() != 50000 {
		t.Errorf("max %d, count %d", h.Max(), h.Count())
	}
}

func TestHistogramEnds(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	h.Add(-5)
	h.Add(1<<63 - 1)
	if h.Quantile(0) != 0 || int64(h.Quantile(1)) != 1<<63-1 {
		t.Errorf("%d %d", h.Quantile(0), h.Quantile(1))
	}
}

func TestEveryOutcomeHasAName(t *testing.T) {
	seen := make(map[string]bool)
	for o := range Outcome(NumOutcomes) {
		if o.String() == "" || seen[o.String()] {
			t.Errorf("outcome %d: %q", o, o)
		}
		seen[o.String()] = true
	}
	if Outcome(200).String() != "unknown outcome" {
		t.Error(Outcome(200).String())
	}
}
