package diff

import (
	"math"
	"testing"
)

// TestLogitBetween: if the logits of all items vary equally between recordings, that variance is found, and an item's
// variance is drawn towards the expected one for its size.
func TestLogitBetween(t *testing.T) {
	const perRun = 10_000
	items := func(logit float64) (list []evidence) {
		for i := range 60 {
			p := 0.3 * math.Pow(0.93, float64(i))
			within := p * (1 - p) / perRun
			e := evidence{item: &item{prints: uint64(i + 1)}, total: [sides]float64{1e6, 1e6},
				between: between{df: 8, within: within, variance: within + logit*p*p*(1-p)*(1-p)}}
			for s := range sides {
				e.item.sum[s] = int64(p * 1e6)
			}
			list = append(list, e)
		}
		return list
	}
	for _, want := range []float64{0, 0.0025, 0.04} {
		list := items(want)
		p := newPrior(list)
		if math.Abs(p.logit-want) > 0.01*want {
			t.Errorf("the logit's variance is %v, want %v", p.logit, want)
		}
		e := list[0]
		e.between.runs = [sides]float64{5, 5}
		e.between.settle(&e, &p)
		if got := e.between.error2[Before] * 5 / e.between.variance; got < 0.95 || got > 1.3 {
			t.Errorf("a large item's variance of %v becomes %.2f times as large", want, got)
		}
	}
	if p := newPrior(nil); p.logit != 0 || p.df != 0 {
		t.Errorf("of no item: %+v", p)
	}
	far := items(0.0025)
	far[3].between.variance *= 1e12
	if p := newPrior(far); math.IsNaN(p.ratio) || p.logit > mostLogit {
		t.Errorf("of one item that is far off: %+v", p)
	}
}
