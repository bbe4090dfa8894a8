package triage

import (
	"fmt"
	"slices"
	"time"

	"goprof/profile"
	"goprof/triage/vitals"
)

// Before a collection, and for many other operations, all threads must stop at a safepoint. That takes microseconds.
// Threads that have stopped wait for the others. So one thread that does not stop (in a long loop without a safepoint
// poll, or waiting for a page from a disk) holds up the whole program.
const (
	// stallLasts is how long all readings must show that the same safepoint has not begun. On a machine that is short
	// of CPU a safepoint may take some tenths of a second.
	stallLasts = time.Second
	// stallShare is the part of the time in which the JVM waited for threads, by its own count.
	stallShare = 0.2
)

func safepointStall(x *exam) *suspicion {
	lasted, holders := x.longestStall()
	share, counted := x.Rates.SafepointSyncShare.Get()
	_, told := x.last.JVM.Safepoints.State.Get()
	told = told && x.last.JVM.Safepoints.Count.IsKnown() // without the count, two safepoints cannot be distinguished
	if !counted && !told {
		return x.cannotTell("neither the JVM's counters nor its symbols report safepoints")
	}
	if lasted < stallLasts && share < stallShare {
		if !x.last.JVM.Safepoints.State.IsKnown() {
			return x.cannotTell("this JVM's counters do not show one that does not begin, and its libjvm.so has no symbols")
		}
		return nil
	}
	if lasted < stallLasts && x.starving() {
		return x.cannotTell(fmt.Sprintf("safepoints began late for %s of the time, and threads without a CPU come "+
			"late to one", percent(share)))
	}
	s := &suspicion{sure: 0.96, severity: profile.Critical,
		claim: fmt.Sprintf("A safepoint did not begin for %s: the whole program waits for %s.", seconds(lasted),
			x.namesOf(holders)),
		next: fmt.Sprintf("goprof dump --pid %d  (where that thread is)", x.PID)}
	if lasted < stallLasts {
		s.sure, s.severity = scaled(share, stallShare, 0.7, 0.9), profile.Warning
		s.claim = fmt.Sprintf("Safepoints begin late: for %s of the time the program waited for threads that ran on.",
			percent(share))
	}
	if op := x.operation(); op != "" {
		s.evidence = append(s.evidence, "the VM thread wants to execute "+op)
	}
	for _, tid := range holders {
		if line := x.whereIs(tid); line != "" {
			s.evidence = append(s.evidence, line)
		}
	}
	if counted {
		s.evidence = append(s.evidence, fmt.Sprintf("by the JVM's own count %s of the time went into waiting for threads",
			percent(share)))
	}
	return s
}

// longestStall returns the longest run of readings at which the same safepoint had not begun, and the threads that ran
// at all of them.
func (x *exam) longestStall() (longest time.Duration, holders []int) {
	var began *vitals.Reading
	var still []int
	for _, r := range x.Readings {
		sp := &r.JVM.Safepoints
		if sp.State.Or(vitals.NoSafepoint) != vitals.BeginsSafepoint || !sp.Count.IsKnown() {
			began = nil
			continue
		}
		if began == nil || began.JVM.Safepoints.Count.Or(0) != sp.Count.Or(0) {
			began, still = r, slices.Clone(sp.HoldOuts)
			continue
		}
		still = slices.DeleteFunc(still, func(tid int) bool { return !slices.Contains(sp.HoldOuts, tid) })
		if d := r.At.Sub(began.At); d > longest {
			longest, holders = d, slices.Clone(still)
		}
	}
	return longest, holders
}

func (x *exam) operation() string {
	for _, r := range x.Readings {
		if r.JVM.Safepoints.State.Or(vitals.NoSafepoint) == vitals.BeginsSafepoint {
			if op := r.JVM.Safepoints.Operation.Or(""); op != "" {
				return op
			}
		}
	}
	return ""
}

func (x *exam) namesOf(tids []int) string {
	var names []string
	for _, tid := range tids {
		names = append(names, x.nameOf(tid))
	}
	if len(names) == 0 {
		return "a thread that is not known"
	}
	return few(names, 3)
}

func (x *exam) nameOf(tid int) string {
	for i := range x.last.Threads {
		if t := &x.last.Threads[i]; t.TID == tid {
			return profile.ThreadRef{TID: tid, Name: t.Name}.String()
		}
	}
	return fmt.Sprintf("thread %d", tid)
}

// whereIs returns what a thread did in the last dump with its stack.
func (x *exam) whereIs(tid int) string {
	for i := len(x.Dumps) - 1; i >= 0; i-- {
		if t := x.Dumps[i].thread(tid); t != nil && len(t.Stack.Frames) > 0 {
			return fmt.Sprintf("%s is in %s", x.nameOf(tid), topJava(&t.Stack))
		}
	}
	return ""
}
