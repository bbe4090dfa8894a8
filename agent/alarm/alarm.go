// Package alarm says when a JVM needs a snap: it is stuck, it is out of memory, or it has used its CPUs for too long.
//
// It reads nothing itself. The caller gives Watch.Judge a reading of a JVM's vitals every few seconds, and the Watch
// keeps earlier values for comparison. A value that is not known never causes an alarm.
package alarm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"goprof/triage/vitals"
)

// Rules are the alarms that a user wants. The zero value wants none.
type Rules struct {
	Stuck, OutOfMemory, Signal bool
	CPU                        float64       // CPU use that is too high, a share of the CPUs of the JVM; 0: no alarm
	For                        time.Duration // how long the JVM must use more than CPU
}

// Any reports whether at least one alarm is wanted.
func (r *Rules) Any() bool { return r.Stuck || r.OutOfMemory || r.Signal || r.CPU > 0 }

// String writes rules in the form that Parse reads.
func (r *Rules) String() string {
	var list []string
	for text, on := range map[string]bool{"stuck": r.Stuck, "oom": r.OutOfMemory, "SIGUSR2": r.Signal} {
		if on {
			list = append(list, text)
		}
	}
	if r.CPU > 0 {
		list = append(list, fmt.Sprintf("cpu>%g%% for %v", 100*r.CPU, r.For))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

const (
	stuckFor        = 10 * time.Second // longer than a collection of a healthy program
	leastFor        = 10 * time.Second
	mostFor         = time.Hour
	usualFor        = 30 * time.Second
	expected        = `"stuck, oom, cpu>90% for 30s, SIGUSR2"`
	sameSafepoint   = "threads have stood at a safepoint (%s) for %s"
	sameUnfinished  = "a safepoint has waited for a thread for %s"
	deadlockFound   = "threads wait for each other: a deadlock"
	outOfMemoryText = "an OutOfMemoryError was thrown"
)

// Parse reads rules that are separated by commas.
func Parse(text string) (r Rules, err error) {
	for rule := range strings.SplitSeq(text, ",") {
		rule = strings.TrimSpace(rule)
		switch {
		case rule == "stuck":
			r.Stuck = true
		case rule == "oom":
			r.OutOfMemory = true
		case rule == "SIGUSR2":
			r.Signal = true
		case strings.HasPrefix(rule, "cpu>"):
			if err := r.setCPU(strings.TrimPrefix(rule, "cpu>")); err != nil {
				return Rules{}, err
			}
		default:
			return Rules{}, fmt.Errorf("%q is no alarm like %s", rule, expected)
		}
	}
	return r, nil
}

func (r *Rules) setCPU(text string) error {
	share, long, timed := strings.Cut(text, "% for ")
	if r.For = usualFor; timed {
		d, err := time.ParseDuration(strings.TrimSpace(long))
		if err != nil || d < leastFor || d > mostFor {
			return fmt.Errorf("%q is no time from %v to %v", long, leastFor, mostFor)
		}
		r.For = d
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(share, "%"), 64)
	if err != nil || !(percent > 0 && percent < 100) {
		return fmt.Errorf("%q is no share of CPUs like 90%%", share)
	}
	r.CPU = percent / 100
	return nil
}

// Watch keeps the earlier values of one JVM.
type Watch struct {
	last       *vitals.Reading
	busySince  time.Time // zero: it is not busy
	standing   time.Time // when the safepoint under way was first seen; zero: there is none
	standingAt uint64    // its number
	errors     uint64    // OutOfMemoryErrors at the last reading
	counted    bool
	locked     int // deadlocks seen in a row
}

// Judge compares a reading with earlier ones. It returns why a snap is due, or "" if none is.
func (w *Watch) Judge(r *Rules, now *vitals.Reading) (why string) {
	before := w.last
	w.last = now
	if r.OutOfMemory && w.outOfMemory(now) {
		return outOfMemoryText
	}
	if why := w.safepoint(now); r.Stuck && why != "" {
		return why
	}
	if r.CPU > 0 && before != nil {
		return w.busy(r, before, now)
	}
	return ""
}

func (w *Watch) outOfMemory(now *vitals.Reading) bool {
	n, ok := now.JVM.Errors.OutOfMemory.Get()
	if !ok {
		return false
	}
	more := w.counted && n > w.errors
	w.errors, w.counted = n, true
	return more
}

// safepoint reports a safepoint that lasts too long. The JVM counts a safepoint at its beginning, and its state shows
// that the safepoint goes on.
func (w *Watch) safepoint(now *vitals.Reading) string {
	s := &now.JVM.Safepoints
	state, ok := s.State.Get()
	number, ok2 := s.Count.Get()
	if !ok || !ok2 || state == vitals.NoSafepoint {
		w.standing = time.Time{}
		return ""
	}
	if w.standing.IsZero() || number != w.standingAt {
		w.standing, w.standingAt = now.At, number
	}
	lasts := now.At.Sub(w.standing)
	switch {
	case lasts < stuckFor:
		return ""
	case state == vitals.BeginsSafepoint:
		return fmt.Sprintf(sameUnfinished, lasts.Round(time.Second))
	}
	return fmt.Sprintf(sameSafepoint, s.Operation.Or("of unknown kind"), lasts.Round(time.Second))
}

func (w *Watch) busy(r *Rules, before, now *vitals.Reading) string {
	used, ok := now.Process.CPU.Get()
	was, ok2 := before.Process.CPU.Get()
	cpus := cpusOf(now)
	over := now.At.Sub(before.At)
	if !ok || !ok2 || cpus == 0 || over <= 0 || float64(used-was) < r.CPU*cpus*float64(over) {
		w.busySince = time.Time{}
		return ""
	}
	if w.busySince.IsZero() {
		w.busySince = before.At
	}
	if lasts := now.At.Sub(w.busySince); lasts >= r.For {
		w.busySince = time.Time{}
		return fmt.Sprintf("it has used more than %.0f %% of its %.3g CPUs for %s", 100*r.CPU, cpus,
			lasts.Round(time.Second))
	}
	return ""
}

// cpusOf returns how many CPUs a JVM may use, or 0 if that is not known.
func cpusOf(r *vitals.Reading) float64 {
	allowed, ok := r.Process.CPUsAllowed.Get()
	if !ok {
		return 0
	}
	return min(float64(allowed), r.Cgroup.CPUs.Or(float64(allowed)))
}

// Deadlocked takes the result of a search for deadlocks, and returns why a snap is due. It needs two searches in a row,
// because threads are read one after the other and a single search may be wrong. A deadlock causes one alarm.
func (w *Watch) Deadlocked(found bool) (why string) {
	if !found {
		w.locked = 0
		return ""
	}
	if w.locked++; w.locked == 2 {
		return deadlockFound
	}
	return ""
}
