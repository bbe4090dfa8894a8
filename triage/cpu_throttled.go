package triage

import (
	"fmt"

	"goprof/profile"
)

// A container has a limit of CPU time for each period, mostly of 100 ms. A program that has used it up stands still for
// the rest of the period. Bursts reach the limit now and then (at a start, in a collection). If that happens in every
// fifth period or more, the limit slows the program down.
const (
	throttledShare = 0.2
	leastPeriods   = 10 // with fewer periods the share is chance
)

func cpuThrottled(x *exam) *suspicion {
	share, ok := x.throttling()
	if !ok {
		if limited, known := x.last.Cgroup.Limited.Get(); known && !limited {
			return nil
		}
		return x.cannotTell("the limit of its control group could not be read")
	}
	if share < throttledShare {
		return nil
	}
	periods, throttled := x.Rates.Periods.Or(0), x.Rates.Throttled.Or(0)
	limit := "its control group"
	if n, ok := x.last.Cgroup.CPUs.Get(); ok {
		limit = fmt.Sprintf("its control group of %.2g CPUs", n)
	}
	s := &suspicion{sure: scaled(share, throttledShare, 0.86, 0.94), severity: profile.Warning,
		claim: fmt.Sprintf("The CPU limit of %s stops the program: in %s of all periods its time was used up.", limit,
			percent(share)),
		evidence: []string{fmt.Sprintf("%d of %d periods in %s were throttled (cpu.stat)", throttled, periods,
			seconds(x.Rates.Over))},
		next: fmt.Sprintf("a higher CPU limit, or less work; goprof record --pid %d -d 30s  (what the time goes into)",
			x.PID)}
	before, ok := x.first.Cgroup.ThrottledTime.Get()
	if after, ok2 := x.last.Cgroup.ThrottledTime.Get(); ok && ok2 && after > before {
		s.evidence = append(s.evidence, fmt.Sprintf("it stood still for %s, the sum over its CPUs", seconds(after-before)))
	}
	if used, ok := x.Rates.CPU.Get(); ok {
		s.evidence = append(s.evidence, fmt.Sprintf("the process used %.2f CPUs", used))
	}
	return s
}

// throttling returns the part of the periods in which the program was stopped, or 0 if there were too few periods.
func (x *exam) throttling() (share float64, known bool) {
	periods, ok := x.Rates.Periods.Get()
	throttled, ok2 := x.Rates.Throttled.Get()
	if !ok || !ok2 {
		return 0, false
	}
	if periods < leastPeriods {
		return 0, true
	}
	return float64(throttled) / float64(periods), true
}
