//go:build linux

package perf

import (
	"testing"

	"goprof/sampler/ring"
)

// TestFitStack: fit makes copies smaller after many samples. At the first sample that needs more, it makes them
// as large as possible.
func TestFitStack(t *testing.T) {
	w := stackFit{stack: ring.MostStack}
	feed := func(n int, need uint64) {
		for range n {
			w.seen++
			w.deepest = max(w.deepest, need)
			if fit := w.fit(ring.MostStack); fit != w.stack {
				w.begin(fit)
			}
		}
	}
	for _, step := range []struct {
		n    int
		need uint64
		want int
	}{
		{stackWindow - 1, 3000, ring.MostStack},
		{1, 3000, stackLeast},
		{10 * stackWindow, stackLeast, stackLeast},
		{1, stackLeast + 8, ring.MostStack},
		{windowGrows*stackWindow - 1, 3000, ring.MostStack}, // one sample that needed more is enough
		{1, 3000, stackLeast},
		{1, stackLeast + 8, ring.MostStack},
		{windowGrows * stackWindow, 3000, ring.MostStack}, // longer than before
	} {
		if feed(step.n, step.need); w.stack != step.want {
			t.Fatalf("after %d samples of %d bytes: %d, not %d", step.n, step.need, w.stack, step.want)
		}
	}
}

// Samples of a first, short period count no more than others.
func TestPerfAccept(t *testing.T) {
	const interval = 1000
	for period := uint64(70); period <= interval; period += 31 {
		e := perfEvent{starting: true, period: period}
		n := 0
		for i := range 100 * interval / period {
			if e.accept(int64(i), interval) {
				n++
			}
		}
		if n < 99 || n > 101 {
			t.Errorf("%d samples in 100 intervals with a period of %d", n, period)
		}
	}
	// Periods are drawn at random. Their mean rate is the one that was asked for, and they differ.
	sum, least, most := 0.0, uint64(interval*1000), uint64(0)
	for i := range 1000 {
		p := randomPeriod(interval*1000, float64(i)/999)
		sum += 1 / float64(p)
		least, most = min(least, p), max(most, p)
	}
	if mean := sum / 1000 * interval * 1000; mean < 0.999 || mean > 1.001 || least > 910_000 || most < 1_110_000 {
		t.Errorf("mean rate %.4f, periods from %d to %d", mean, least, most)
	}
}
