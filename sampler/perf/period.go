//go:build linux

package perf

// The moments of samples.
//
// The kernel's timer runs out after each period of a thread's CPU time. A program whose own period is the same, or a
// multiple, would be sampled at the same place again and again. So now and then an event gets another period, within a
// tenth of the interval. The mean rate stays the same. After some twenty samples the timer has reached every part of
// the program's period.
//
// The ioctl that changes a period also restarts it: the time since the last sample is lost. So goprof changes a period
// soon after a sample. It does so seldom, because the ioctl interrupts the thread's CPU.
//
// The first period of an event has a random length below the interval. Otherwise a thread that moves among many CPUs,
// with an event on each, would never be sampled if it used less than one period on each. The thread must not count for
// more because of that: until the event has its right period, goprof removes surplus samples.
const (
	jitterShare = 10 // up to 1/10 longer or shorter
	redrawAfter = 16 // samples
	// shortest bounds a first period: at least interval/shortest. This bounds the cost of surplus samples until the
	// next tick.
	shortest = 16
)

type perfEvent struct {
	fd       int32
	starting bool   // the period is the event's first
	gaps     int32  // samples since its period was set
	period   uint64 // ns
	credit   uint64 // while starting: CPU time since the last sample that counted
	newest   int64  // when the event had its last sample
	pace     pace
}

func (r *perfRun) firstPeriod(e *perfEvent) {
	interval := r.interval()
	e.pace = pace{factor: r.thin.factor}
	e.gaps, e.credit, e.newest = 0, 0, 0
	e.period, e.starting = interval, false
	if !r.cfg.NoJitter {
		e.period, e.starting = max(1+r.rng.Uint64N(interval), interval/shortest, leastPeriod), true
	}
}

// leastPeriod is the kernel's own minimum (kernel/events/core.c, perf_swevent_start_hrtimer).
const leastPeriod = 10_000

func (e *perfEvent) accept(when int64, interval uint64) bool {
	e.newest = when
	e.gaps++
	if !e.starting || e.gaps == 1 {
		return true
	}
	e.credit += e.period
	if e.credit < interval {
		return false
	}
	e.credit -= interval
	return true
}

// adapt changes the periods of a thread's events after a sample, if that is due.
func (r *perfRun) adapt(w *perfThread) {
	if r.threads[w.tid] != w {
		return
	}
	if stack := w.copies.fit(r.mostStack()); stack != w.copies.stack {
		r.rewatch(w, stack)
		return
	}
	if r.cfg.NoJitter {
		return
	}
	for i := range w.events {
		e := &w.events[i]
		if e.fd < 0 || e.gaps == 0 {
			continue
		}
		fresh := r.now-e.newest <= int64(e.period)/4
		if e.starting || e.gaps >= redrawAfter && fresh {
			r.setPeriod(e, randomPeriod(r.interval(), r.rng.Float64()))
		}
	}
}

// randomPeriod returns a period near the interval. It draws the rate, the inverse of the period, evenly. An event keeps
// its period for a time that does not depend on the period. So the mean of the rates must be right, not the mean of the
// periods.
func randomPeriod(interval uint64, at float64) uint64 {
	return uint64(float64(interval) / (1 + (2*at-1)/jitterShare))
}
