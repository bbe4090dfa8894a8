//go:build linux

package events

import (
	"sync/atomic"
	"time"

	"goprof/sampler"
)

// Bounding the samples of probes. For each sample the kernel copies a stack, and goprof walks it. If there are too many
// samples, the interval becomes longer. When there are few, it becomes shorter again, but never shorter than the user
// asked for. The program decides at the hit how much the sample stands for. So sums stay right when the interval
// changes.

const (
	rateWindow = int64(100 * time.Millisecond)
	// mostSamples bounds the samples of an event per second, unless Config.MostSamples is set.
	mostSamples = 4000
	// enoughToRate is how many samples give a rate. If a window may have fewer, the window is longer.
	enoughToRate = 32
	// calm is how far below its bounds an event must be before its interval becomes shorter. The interval is halved, so
	// the event stays below its bounds.
	calm = 0.25
)

// isTimeToRate reports whether to look at the rates now: the window has passed, or it has more samples than a window
// may have.
func (r *eventRun) isTimeToRate(now int64) bool {
	passed := now - r.checkedAt
	window := max(rateWindow, int64(enoughToRate/r.most*1e9))
	return passed >= window || r.stats.Attempted-r.attempted > int64(r.most*float64(window)/1e9) && passed >= shortWindow
}

// shortWindow is the shortest time that gives a rate.
const shortWindow = int64(10 * time.Millisecond)

// boundCounters is boundRates for counters. A counter keeps its interval, so goprof drops some samples of all counters
// of a run.
func (r *eventRun) boundCounters(window int64, cost float64) {
	rate := float64(r.stats.Attempted-r.attempted) / (float64(window) / 1e9)
	r.fewer = int64(fittingInterval(uint64(r.fewer), 1, 1, 1, max(rate/r.most, cost)))
	r.fewer = min(r.fewer, mostThin)
}

// boundRates sets the intervals of events by their rates of samples, and by the CPU time that goprof has used.
func (r *eventRun) boundRates(window int64) {
	cost := r.overBudget(window)
	if len(r.counters.fds) > 0 {
		r.boundCounters(window, cost)
	}
	r.attempted = r.stats.Attempted
	r.contents.setChance(window)
	for i := range r.probes {
		p := &r.probes[i]
		taken := r.brought[p.number]
		rate := float64(taken-p.seen) / (float64(window) / 1e9)
		p.seen = taken
		if p.counts == nil {
			continue
		}
		now := atomic.LoadUint64(&p.counts.Interval)
		hits, amount := atomic.LoadUint64(&p.counts.Hits), atomic.LoadUint64(&p.counts.Amount)
		asked := min(max(r.list[p.number].Interval, 1)*uint64(r.thinness()), maxInterval)
		next := fittingInterval(max(now, asked), asked, hits, amount, max(rate/r.most, cost))
		p.longest = max(p.longest, next)
		atomic.StoreUint64(&p.counts.Interval, next)
	}
}

// overBudget returns the CPU time that goprof has used in a window, divided by the CPU time that it may use. 0: there
// is no bound.
func (r *eventRun) overBudget(window int64) float64 {
	if r.cfg.MaxOverhead <= 0 {
		return 0
	}
	used := sampler.OwnCPU()
	since := used - r.ownCPU
	r.ownCPU = used
	return float64(since) / (float64(window) * r.cfg.MaxOverhead)
}

// fittingInterval returns the next interval of an event that has over times as many samples as it may have. asked is
// the shortest interval.
func fittingInterval(now, asked, hits, amount uint64, over float64) uint64 {
	switch {
	case over > 1:
		return longerInterval(now, hits, amount, over)
	case over < calm && now > asked:
		return max(now/2, asked)
	}
	return now
}

// longerInterval returns the interval with which an event has no more samples than it may have. It now has over times
// as many. The target chooses the amounts: malloc(-1) makes their sum anything.
func longerInterval(now, hits, amount uint64, over float64) uint64 {
	least := min(amount/max(hits, 1), maxInterval) // a shorter interval would change nothing
	times := uint64(min(over, maxInterval)) + 1
	return min(max(now, least, 1)*times, maxInterval)
}

// Thin makes samples so many times rarer than was asked for. Each sample then stands for so many times as much. Any
// goroutine may call it.
func (e *Engine) Thin(times float64) { e.thin.Store(int64(min(max(times, 1), mostThin))) }

// mostThin bounds Thin, because the weight of a sample is a product.
const mostThin = 1 << 20

// thinness returns what Thin has set. A counter of the kernel keeps its interval (openCounters), so goprof drops its
// samples by lot.
func (e *Engine) thinness() int64 { return max(e.thin.Load(), 1) }
