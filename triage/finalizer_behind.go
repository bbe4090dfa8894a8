package triage

import (
	"fmt"

	"goprof/profile"
	"goprof/triage/vitals"
)

// A collection may hand thousands of objects to the finalizer at once, which it handles in a moment. The finalizer is
// behind if many objects wait all the time and their number does not fall.
const (
	manyWaiting = 1000
	notFewer    = 0.9 // the number at the end, as a part of that at the beginning
)

func finalizerBehind(x *exam) *suspicion {
	finalizers := func(r *vitals.Reading) (uint64, bool) { return r.JVM.References.Finalizers.Get() }
	pending := func(r *vitals.Reading) (uint64, bool) { return r.JVM.References.Pending.Get() }
	_, ok := finalizers(x.last)
	_, ok2 := pending(x.last)
	if len(x.Readings) < 2 || !ok && !ok2 {
		return x.cannotTell("the queues of references could not be read")
	}
	who, atLeast := "Finalizer", ""
	first, last, behind := x.stays(finalizers)
	if !behind {
		who = "Reference Handler"
		if first, last, behind = x.stays(pending); !behind {
			return nil
		}
		if last >= vitals.MaxPending {
			atLeast = "at least "
		}
	}
	s := &suspicion{sure: 0.85, severity: profile.Critical,
		claim: fmt.Sprintf("The thread %q is behind: %s%d objects wait for it, and their memory cannot be freed.", who,
			atLeast, last),
		evidence: []string{fmt.Sprintf("%d waited %s before", first, seconds(x.Span()))},
		next:     fmt.Sprintf("goprof dump --pid %d  (what that thread does)", x.PID)}
	if where := x.javaThread(who); where != "" {
		s.evidence = append(s.evidence, where)
	}
	return s
}

// stays reports whether many objects waited at all readings, and no fewer at the end.
func (x *exam) stays(count func(*vitals.Reading) (uint64, bool)) (first, last uint64, stays bool) {
	first, _ = count(x.first)
	for _, r := range x.Readings {
		n, ok := count(r)
		if !ok || n < manyWaiting {
			return 0, 0, false
		}
		last = n
	}
	return first, last, float64(last) >= notFewer*float64(first)
}

// javaThread returns where the named thread was in the last dump.
func (x *exam) javaThread(name string) string {
	for i := len(x.Dumps) - 1; i >= 0; i-- {
		for j := range x.Dumps[i].Threads {
			if t := &x.Dumps[i].Threads[j]; t.Name == name && len(t.Stack.Frames) > 0 {
				return fmt.Sprintf("%q is in %s", name, topJava(&t.Stack))
			}
		}
	}
	return ""
}
