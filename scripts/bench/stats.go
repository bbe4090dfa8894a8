//go:build linux

package main

import (
	"math"
	"slices"
)

// quantile of sorted values, 0 if there are none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// spread is a median over rounds with the quartiles beside it: a median alone hides how noisy the machine is.
type spread struct{ low, mid, high float64 }

func spreadOf(values []float64) spread {
	v := slices.Sorted(slices.Values(values))
	return spread{quantile(v, 0.25), quantile(v, 0.5), quantile(v, 0.75)}
}

// estimate is a location with its 95 % confidence interval.
type estimate struct {
	at, low, high float64
	n             int
}

// shift estimates by how much paired differences lie beside 0: the Hodges-Lehmann estimator and its
// interval, from the signed-rank statistic of Wilcoxon. All pairs count, and a wild one no more than another.
func shift(differences []float64) estimate {
	n := len(differences)
	if n == 0 {
		return estimate{math.NaN(), math.Inf(-1), math.Inf(1), 0}
	}
	var means []float64 // of all pairs of differences, each with itself too
	for i, a := range differences {
		for _, b := range differences[i:] {
			means = append(means, (a+b)/2)
		}
	}
	slices.Sort(means)
	e := estimate{at: quantile(means, 0.5), low: math.Inf(-1), high: math.Inf(1), n: n}
	f := float64(n)
	k := int(f*(f+1)/4 - 1.96*math.Sqrt(f*(f+1)*(2*f+1)/24))
	if k >= 1 { // fewer than 6 pairs tell nothing at 95 %
		e.low, e.high = means[k-1], means[len(means)-k]
	}
	return e
}
