package triage

import (
	"fmt"
	"math"

	"goprof/profile"
	"goprof/triage/vitals"
)

// Memory of a process that is outside of its heap: native libraries, direct buffers, stacks, the JVM's own. It grows
// while a JVM starts, and then hardly. What is in memory of the heap is measured, not reckoned: a heap takes pages of
// what it has committed long ago whenever it first reaches them. Metadata of classes and compiled code have limits of
// their own, and are not counted. Pages of files do not count either.
const (
	leastGrowth = 32 << 20 // bytes in all
	growthRate  = 4 << 20  // bytes a second
	// eachThird is the part of it that comes in each third of the time: a buffer that is made once is no leak.
	eachThird = 0.15
)

func nativeGrowth(x *exam) *suspicion {
	if x.Stopped {
		return nil
	}
	points := x.outside()
	if len(points) < 4 {
		return x.cannotTell("how much of its memory is in the heap could not be read (/proc/PID/pagemap)")
	}
	first, last := points[0], points[len(points)-1]
	grown, over := last.bytes-first.bytes, last.r.At.Sub(first.r.At).Seconds()
	if grown < leastGrowth+x.countError() || grown < growthRate*over {
		return nil
	}
	thirds := []outsidePoint{first, points[len(points)/3], points[2*len(points)/3], last}
	for i := 1; i < len(thirds); i++ {
		if thirds[i].bytes-thirds[i-1].bytes < eachThird*grown {
			return nil
		}
	}
	if age, ok := x.last.JVM.Uptime.Get(); !ok || age < settled {
		return x.cannotTell(fmt.Sprintf("its memory outside of the heap grows, as in every JVM that is younger than %s",
			seconds(settled)))
	}
	s := &suspicion{sure: 0.8, severity: profile.Warning,
		claim: fmt.Sprintf("Memory outside of the heap grows: by %s in %s (%s a second).", size(uint64(grown)),
			seconds(last.r.At.Sub(first.r.At)), size(uint64(grown/over))),
		evidence: []string{
			fmt.Sprintf("in memory and of no file: %s, then %s", size(first.r.Process.Anonymous.Or(0)),
				size(last.r.Process.Anonymous.Or(0))),
			fmt.Sprintf("of that in the heap: %s, then %s", size(first.r.Process.Heap.Or(0)),
				size(last.r.Process.Heap.Or(0)))},
		next: fmt.Sprintf("goprof record --pid %d --event malloc -d 30s  (who allocates it; direct buffers: "+
			"java.nio in a heap dump)", x.PID)}
	s.evidence = append(s.evidence, x.roomText(grown/over)...)
	return s
}

// outsidePoint is how much memory outside of the heap there was at a reading.
type outsidePoint struct {
	r     *vitals.Reading
	bytes float64
}

// outside are the readings at which the heap's pages were counted, too.
func (x *exam) outside() (points []outsidePoint) {
	for _, r := range x.Readings {
		all, ok := r.Process.Anonymous.Get()
		heap, ok2 := r.Process.Heap.Get()
		if ok && ok2 {
			other := r.JVM.Metaspace.Committed.Or(0) + r.JVM.Code.Total.Committed.Or(0)
			points = append(points, outsidePoint{r, float64(all) - float64(heap) - float64(other)})
		}
	}
	return points
}

// countError is how many bytes the kernel's sum may be wrong by: each CPU keeps some pages to itself
// (lib/percpu_counter.c, compute_batch_value).
func (x *exam) countError() float64 {
	cpus := float64(x.last.Machine.CPUs.Or(0))
	return 4096 * cpus * math.Max(32, 2*cpus)
}

// roomText says when the control group's memory is full.
func (x *exam) roomText(rate float64) []string {
	used, ok := x.last.Cgroup.Memory.Used.Get()
	most, ok2 := x.last.Cgroup.Memory.Max.Get()
	if !ok || !ok2 || most <= used {
		return nil
	}
	return []string{fmt.Sprintf("its control group has %s of %s: full in %.0f s at this rate", size(used), size(most),
		float64(most-used)/rate)}
}
