package profile

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSlope: 95 of 100 intervals contain the true slope, for few readings and for many. Hardly any series without
// growth counts as certain growth.
func TestSlope(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const rounds = 4000
	for _, readings := range []int{LeastReadings, 4, 6, 60} {
		for _, truth := range []float64{0, 5} {
			held, sure := 0, 0
			for range rounds {
				var x, y []float64
				for i := range readings {
					x, y = append(x, float64(10*i)), append(y, 1e6+truth*float64(10*i)+20*rnd.NormFloat64())
				}
				s, ok := Slope(centred(x, y))
				if !ok {
					t.Fatal("no slope")
				}
				if math.Abs(s.Rate-truth) <= s.Error {
					held++
				}
				if s.Sure() {
					sure++
				}
			}
			if share := float64(held) / rounds; share < 0.93 || share > 0.98 {
				t.Errorf("%d readings: %.3f of intervals hold the truth", readings, share)
			}
			if share := float64(sure) / rounds; truth == 0 && share > 0.02 {
				t.Errorf("%d readings: %.3f of what does not grow is sure to", readings, share)
			}
		}
	}
	if _, ok := Slope(centred([]float64{7, 7, 7}, []float64{1, 2, 3})); ok {
		t.Error("a slope within no time")
	}
	if s, _ := Slope(centred([]float64{0, 1, 2}, []float64{1, 3, 5})); s.Rate != 2 || s.Error > 1e-6 || !s.Sure() {
		t.Errorf("%+v", s)
	}
	if Upward(3, 6) || !Upward(4, 6) {
		t.Error("3 of 5 steps are no trend, and 4 are")
	}
}

func centred(x, y []float64) (n int, xx, xy, yy float64) {
	n = len(x)
	var meanX, meanY float64
	for i := range x {
		meanX, meanY = meanX+x[i]/float64(n), meanY+y[i]/float64(n)
	}
	for i := range x {
		dx, dy := x[i]-meanX, y[i]-meanY
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	return n, xx, xy, yy
}
