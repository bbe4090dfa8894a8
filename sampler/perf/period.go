//go:build linux

package perf

// The moments of samples.
//
// The kernel's timer runs out after each period of a thread's CPU time. A program whose own period is the same, or a
// multiple, would be met in the same place again and again. So now and then an event gets another period, within a
// tenth of the one that was asked for, in such a way that the mean rate stays. Within some twenty samples the timer has
// come to every part of the program's period.
//
// An ioctl changes a period and begins it again: the part of the period that had passed since the last sample is lost.
// So the change is made soon after a sample, and seldom, because the ioctl interrupts the CPU that the thread runs on.
//
// The first period of an event begins at a random point, too. A thread that moves among many CPUs has an event on each.
// If it used less than one period on each of them, it would otherwise never be seen. The first period is too short, but
// the thread must not count for more because of that: until the period is set right, surplus samples are removed.
const (
	jitterShare = 10 // 1/10 up and down
	redrawAfter = 16 // samples
	// shortest bounds a first period: it is at least interval/shortest. That bounds what surplus samples cost until the
	// next tick.
	shortest = 16
)

type perfEvent struct {
	fd       int32
	starting bool   // its period is a part of the interval
	gaps     int32  // samples since its period was set
	period   uint64 // ns
	credit   uint64 // while starting: CPU time since the sample that counted
	newest   int64  // when the event's last sample was
	pace     pace
}

// firstPeriod draws the first period of a new event.
func (r *perfRun) firstPeriod(e *perfEvent) {
	interval := r.interval()
	e.pace = pace{factor: r.thin.factor}
	e.gaps, e.credit, e.newest = 0, 0, 0
	e.period, e.starting = interval, false
	if !r.cfg.NoJitter {
		e.period, e.starting = max(1+r.rng.Uint64N(interval), interval/shortest, leastPeriod), true
	}
}

// leastPeriod is the kernel's own bound (kernel/events/core.c, perf_swevent_start_hrtimer).
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

// adapt changes a thread's events after a sample, where they need a change.
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

// randomPeriod is a period near the interval. Its inverse, the rate, is drawn evenly. Periods are drawn again after a
// time that does not depend on them, so the rates must have the right mean, and not the periods.
func randomPeriod(interval uint64, at float64) uint64 {
	return uint64(float64(interval) / (1 + (2*at-1)/jitterShare))
}
