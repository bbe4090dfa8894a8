package diff

import (
	"math"
	"testing"
	"time"
)

// TestDrift: if each side has one recording with times, the comparison adds noise that no block shows. This noise
// averages out in long recordings.
func TestDrift(t *testing.T) {
	const total = 10_000
	e := evidence{item: &item{sum: [sides]int64{total / 2, total / 2}}, total: [sides]float64{total, total}}
	of := func(timed bool, span time.Duration, runs int) float64 {
		var c Comparison
		for s := range sides {
			c.sides[s] = side{total: total, looks: total, span: span, runs: make([]run, runs), timed: timed}
		}
		return (c.independent(&e, Before) + c.drift(&e, Before)) / c.independent(&e, Before)
	}
	for _, test := range []struct {
		name  string
		timed bool
		span  time.Duration
		runs  int
		want  float64
	}{
		{"5 s", true, 5 * time.Second, 1, 1.5625},
		{"2 s: no more is known of shorter ones", true, 2 * time.Second, 1, 1.5625},
		{"50 s", true, 50 * time.Second, 1, 1.05625},
		{"several recordings measure it", true, 5 * time.Second, 2, 1},
		{"no times: the variance is assumed anyway", false, 0, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := of(test.timed, test.span, test.runs); math.Abs(got-test.want) > 1e-9 {
				t.Errorf("%.3f times the variance of independent looks, not %v", got, test.want)
			}
		})
	}
}
