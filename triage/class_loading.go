package triage

import (
	"fmt"
	"time"

	"goprof/profile"
)

// A starting program loads thousands of classes. A running program has the classes that it needs. If classes are loaded
// all the time, code generates them: a scripting engine that is created for each request, or proxies that are not
// reused.
const (
	classRate = 20.0 // classes per second, in both halves of the time
	// settled is the least age of the JVM. A large server loads most of its classes within its first minute.
	settled = time.Minute
	// leastCounts is the number of readings that two halves need.
	leastCounts = 3
)

func classLoading(x *exam) *suspicion {
	age, ok := x.last.JVM.Uptime.Get()
	if n := len(x.Readings); n < leastCounts {
		return x.cannotTell(fmt.Sprintf("the JVM's counters were read %d times in this time; it takes %d readings to see "+
			"whether a rate stays", n, leastCounts))
	}
	first, second, ok2 := x.classRates()
	if !ok2 {
		return x.cannotTell("the JVM's counters of classes could not be read")
	}
	if min(first, second) < classRate {
		return nil
	}
	if !ok || age < settled {
		return x.cannotTell(fmt.Sprintf("the JVM is younger than %s, and loads classes as every program that starts",
			seconds(settled)))
	}
	loaded, unloaded := x.last.JVM.Classes.Loaded.Or(0), x.last.JVM.Classes.Unloaded.Or(0)
	return &suspicion{sure: 0.75, severity: profile.Warning,
		claim: fmt.Sprintf("Classes are loaded all the time: %.0f a second, %s after the start.", (first+second)/2,
			seconds(age)),
		evidence: []string{fmt.Sprintf("%.0f a second in the first half of the time, %.0f in the second", first, second),
			fmt.Sprintf("%d loaded and %d unloaded since the start", loaded, unloaded),
			fmt.Sprintf("metaspace: %s used", size(x.last.JVM.Metaspace.Used.Or(0)))},
		next: fmt.Sprintf("goprof record --pid %d -d 30s && goprof flame out.collapsed  (search defineClass)", x.PID)}
}

// classRates returns the classes loaded per second in both halves of the time.
func (x *exam) classRates() (first, second float64, ok bool) {
	n := len(x.Readings)
	rate := func(a, b int) float64 {
		before, ok1 := x.Readings[a].JVM.Classes.Loaded.Get()
		after, ok2 := x.Readings[b].JVM.Classes.Loaded.Get()
		over := x.Readings[b].At.Sub(x.Readings[a].At).Seconds()
		if ok = ok1 && ok2 && over > 0; !ok || after < before {
			return 0
		}
		return float64(after-before) / over
	}
	first = rate(0, n/2)
	if !ok {
		return 0, 0, false
	}
	second = rate(n/2, n-1)
	return first, second, ok
}
