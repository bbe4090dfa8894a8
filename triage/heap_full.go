package triage

import (
	"fmt"
	"slices"

	"goprof/profile"
	"goprof/triage/vitals"
)

// A heap may be full between collections, because the collector lets it fill up. It is too small if collections do not
// empty it. So the lowest of all readings counts, and only if there were collections between the readings.
const (
	// fullHeap is the part of the whole heap that must have been used at every reading. Collectors give up (an
	// OutOfMemoryError: GC overhead limit) if a collection frees less than 2 %. With a tenth of the heap free, a
	// program can still work.
	fullHeap = 0.9
	// fullOld is the same for the old generation after the last collection. Collections of the young generation do not
	// remove garbage from the old one, so fullOld counts only after fullCollections.
	fullOld = 0.95
	// fullCollections is the least number of collections of the whole heap. One is not enough: the program may have
	// requested it (System.gc).
	fullCollections = 2
	// Concurrent collectors avoid collections of the whole heap as long as they can. For these collectors,
	// collectorShare of the JVM's CPU time or restless collections per second replace fullCollections.
	collectorShare = 0.1
	restless       = 2.0
)

func heapFull(x *exam) *suspicion {
	if len(x.Readings) < 2 {
		return x.cannotTell("the heap could not be read")
	}
	least, known := x.leastFull(func(r *vitals.Reading) (float64, bool) { return r.JVM.GC.Heap.Full() })
	old, oldKnown := x.leastFull(oldAfter)
	if !known && !oldKnown {
		return x.cannotTell("the heap's size or its limit is not known")
	}
	full, all := x.collections()
	oldIsFull := old >= fullOld && full >= fullCollections
	if !x.struggles(full, all) || least < fullHeap && !oldIsFull {
		return nil
	}
	s := &suspicion{sure: 0.95, severity: profile.Critical,
		claim: fmt.Sprintf("The heap is full: never less than %s of it was in use, whatever the collector did.",
			percent(least)),
		next: fmt.Sprintf("goprof heap %d -n 6 --every 10s  (what grows; then a larger -Xmx, or the leak mended)", x.PID)}
	if least < fullHeap {
		s.claim = fmt.Sprintf("The old generation is full: %s of it was in use right after collections.", percent(old))
	}
	s.evidence = slices.Concat(x.heapText(), x.classesText(), x.collectionsText())
	if full > 0 {
		s.evidence = append(s.evidence, fmt.Sprintf("%d collections of the whole heap in %s", full, seconds(x.Rates.Over)))
	}
	if n, ok := x.last.JVM.Errors.OutOfMemory.Get(); ok && n > 0 {
		s.evidence = append(s.evidence, fmt.Sprintf("%d OutOfMemoryErrors so far", n))
	}
	return s
}

// oldAfter returns the fill of the old generation after the last collection.
func oldAfter(r *vitals.Reading) (float64, bool) {
	return vitals.Pool{Used: r.JVM.GC.OldAfter, Max: r.JVM.GC.Old.Max}.Full()
}

// leastFull returns the lowest of all readings. It is not known if any reading is not known.
func (x *exam) leastFull(of func(*vitals.Reading) (float64, bool)) (least float64, known bool) {
	least = 2
	for _, r := range x.Readings {
		full, ok := of(r)
		if !ok {
			return 0, false
		}
		least = min(least, full)
	}
	return least, least <= 2
}

// struggles reports whether the collector does all it can to find room.
func (x *exam) struggles(full, all uint64) bool {
	if full >= fullCollections || float64(all) >= restless*max(x.Rates.Over.Seconds(), 1) {
		return true
	}
	return all > 0 && x.work.share(x.work.collector) >= collectorShare && x.work.total >= leastSamples
}

// collections returns the number of collections of the whole heap, and of all collections.
func (x *exam) collections() (full, all uint64) {
	for _, c := range x.Rates.Collectors {
		if c.Kind == vitals.FullCollections {
			full += c.Count
		}
		all += c.Count
	}
	return full, max(all, x.Rates.Collections.Or(0))
}
