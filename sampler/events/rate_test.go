//go:build linux

package events

import (
	"testing"
	"time"

	"goprof/arch/cpus"
	"goprof/sampler"
	"goprof/sampler/ring"
)

// TestLongerInterval: the interval grows by the factor by which the rate is too high. Whatever amounts the target
// reports, the interval does not become 0: otherwise each hit would be a sample.
func TestLongerInterval(t *testing.T) {
	for _, c := range []struct {
		name              string
		now, hits, amount uint64
		rate              float64
		want              uint64
	}{
		{"twice too often", 1, 1000, 1000, 8000, 3},
		{"of a usual amount", 512 << 10, 10, 10 << 20, 4001, 2 << 20},
		{"as long as can be", maxInterval, 1, 1, 1e6, maxInterval},
		{"malloc(-1)", 512 << 10, 1, 1<<64 - 1, 8000, maxInterval},
		{"a sum that has overflown", 1, 4, 1 << 63, 7999, maxInterval},
		{"a rate that cannot be", 1, 1, 1, 1e30, maxInterval},
	} {
		if got := longerInterval(c.now, c.hits, c.amount, c.rate/mostSamples); got != c.want {
			t.Errorf("%s: %d, not %d", c.name, got, c.want)
		}
	}
}

// TestFittingInterval: after a burst the interval comes back to what the user asked for, and not below that. An
// interval that fits is not changed.
func TestFittingInterval(t *testing.T) {
	burst := fittingInterval(512<<10, 512<<10, 10, 10<<20, 40)
	if burst <= 512<<10 {
		t.Fatalf("%d after a burst", burst)
	}
	steps, now := 0, burst
	for ; now > 512<<10 && steps < 100; steps++ {
		now = fittingInterval(now, 512<<10, 10, 10<<20, 0)
	}
	if now != 512<<10 || steps > 8 {
		t.Errorf("%d after %d calm windows", now, steps)
	}
	for _, over := range []float64{calm, 0.5, 1} {
		if got := fittingInterval(burst, 1, 10, 10, over); got != burst {
			t.Errorf("%v times what it may bring: %d, not %d", over, got, burst)
		}
	}
	if got := fittingInterval(1, 1, 10, 10, 0); got != 1 {
		t.Errorf("an interval of 1 becomes %d", got)
	}
}

// TestFewSamplesTellNoRate: if only few samples per second are wanted, the window is long enough for some of them, and
// a burst is noticed before the window's end.
func TestFewSamplesTellNoRate(t *testing.T) {
	r := &eventRun{Engine: &Engine{}, most: 16}
	for _, c := range []struct {
		passed  time.Duration
		samples int64
		is      bool
	}{
		{time.Second, 5, false}, {2 * time.Second, 5, true}, {100 * time.Millisecond, 33, true},
		{time.Millisecond, 1000, false},
	} {
		r.stats.Attempted = r.attempted + c.samples
		if is := r.isTimeToRate(r.checkedAt + int64(c.passed)); is != c.is {
			t.Errorf("%d samples in %v: %v", c.samples, c.passed, is)
		}
	}
}

// TestThinnedCounters: one in ten samples of a kernel's counter is taken, and stands for ten.
func TestThinnedCounters(t *testing.T) {
	r := &eventRun{Engine: New(1, cpus.Here(), []Event{{Name: "page-faults", Interval: 16}}, false), fewer: 2,
		counts: []sampler.EventCount{{Interval: 16}}}
	r.counters = counters{ids: map[uint64]int{7: 0}, own: map[uint64]int{}, last: map[int]lastHit{}}
	r.Thin(5)
	taken, stood := 0, int64(0)
	for range 20_000 {
		if number, amount, _ := r.whatOf(nil, &ring.Hit{ID: 7}); number == 0 {
			taken++
			stood += amount
		}
	}
	if taken < 1700 || taken > 2300 || stood != int64(taken)*16*10 { // 2000, and 7 standard deviations
		t.Errorf("%d of 20,000 are taken, and stand for %d", taken, stood)
	}
}
