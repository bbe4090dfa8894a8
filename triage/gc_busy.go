package triage

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"goprof/profile"
	"goprof/triage/vitals"
)

// A program that allocates much, in a heap of the right size, spends some percent of its CPU time on the collector, and
// at most a tenth. From a third on, the program waits for the collector.
const (
	gcShare = 0.3 // of the CPU time that the JVM uses
	gcCPUs  = 0.2 // of one CPU: no user notices less
	gcPause = 0.2 // of the time, in pauses of the collector
	// needlessPause replaces gcPause if the program could avoid the collections (gcReasons).
	needlessPause = 0.1
)

func gcBusy(x *exam) *suspicion {
	paused, pausesKnown := x.pauseShare()
	share, cpus := x.work.share(x.work.collector), x.work.cpus(x.work.collector)
	byCPU := x.work.total >= leastSamples && share >= gcShare && cpus >= gcCPUs
	if x.CPU == nil && !pausesKnown {
		return x.cannotTell("there is neither a recording of CPU time nor the JVM's counters of collections")
	}
	most := gcPause
	if x.needless() {
		most = needlessPause
	}
	asked := x.askedFor()
	if !byCPU && paused < most && asked == 0 {
		return nil
	}
	s := &suspicion{sure: max(scaled(share, gcShare, 0.6, 0.85), scaled(paused, most, 0.6, 0.85)),
		severity: profile.Warning,
		claim: fmt.Sprintf("The garbage collector is busy: %s of the JVM's CPU time goes into it (%.1f CPUs).",
			percent(share), cpus),
		next: fmt.Sprintf("goprof record --pid %d -d 30s -o gc.jfr && goprof report gc.jfr --by thread", x.PID)}
	switch {
	case byCPU:
	case paused < most:
		s.sure = askedSure
		s.claim = fmt.Sprintf("Collections of the heap are asked for all the time: at least %d in %s. The program stood "+
			"still for %s of the time.", asked, seconds(x.Rates.Over), percent(paused))
	default:
		s.claim = fmt.Sprintf("The garbage collector is busy: the program stood still for it for %s of the time.",
			percent(paused))
	}
	causes, cure := x.gcCauseText()
	s.evidence = slices.Concat(x.collectionsText(), causes, x.heapText(), x.classesText())
	if x.Heap != nil && cure == "" {
		s.next += fmt.Sprintf("; goprof heap %d  (what fills the heap)", x.PID)
	}
	if cure != "" {
		s.next += "  (the cure: " + cure + ")"
	}
	if rate, ok := x.Rates.Allocated.Get(); ok && rate > 0 {
		s.evidence = append(s.evidence, fmt.Sprintf("the program's threads allocate %s a second", size(uint64(rate))))
		s.evidence = append(s.evidence, x.allocatorsText(rate)...)
	}
	return s
}

// allocatorsText names the threads that allocate most. HotSpot counts for each thread, so the figures are exact.
func (x *exam) allocatorsText(all float64) (lines []string) {
	const most, least = 3, 0.05
	threads := slices.Clone(x.Rates.Threads)
	sort.Slice(threads, func(i, j int) bool {
		a, b := &threads[i], &threads[j]
		return cmp.Or(cmp.Compare(b.Allocated.Or(0), a.Allocated.Or(0)), cmp.Compare(a.TID, b.TID)) < 0
	})
	for _, t := range threads[:min(len(threads), most)] {
		if rate := t.Allocated.Or(0); rate >= least*all {
			lines = append(lines, fmt.Sprintf("thread %s tid=%d allocates %s of it", t.Name, t.TID, percent(rate/all)))
		}
	}
	return lines
}

// pauseShare returns the part of the time in which collections stopped all threads.
func (x *exam) pauseShare() (share float64, known bool) {
	for _, c := range x.Rates.Collectors {
		if c.Kind == vitals.YoungCollections || c.Kind == vitals.FullCollections {
			share, known = share+c.Share, true
		}
	}
	return share, known
}

func (x *exam) collectionsText() (lines []string) {
	for _, c := range x.Rates.Collectors {
		if c.Count > 0 && x.Rates.Over > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d in %s (%.1f a second), %s in all", c.Name, c.Count,
				seconds(x.Rates.Over), float64(c.Count)/x.Rates.Over.Seconds(), seconds(c.Time)))
		}
	}
	if n, ok := x.Rates.Collections.Get(); ok && len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("%d collections in %s", n, seconds(x.Rates.Over)))
	}
	return lines
}

func (x *exam) heapText() (lines []string) {
	gc := &x.last.JVM.GC
	for _, p := range []struct {
		name string
		pool vitals.Pool
	}{{"heap", gc.Heap}, {"old generation", gc.Old}} {
		used, ok := p.pool.Used.Get()
		limit, ok2 := p.pool.Max.Get()
		if ok && ok2 && limit > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s of %s used (%s)", p.name, size(used), size(limit),
				percent(float64(used)/float64(limit))))
		}
	}
	return lines
}
