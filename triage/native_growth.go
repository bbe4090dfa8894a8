package triage

import (
	"fmt"
	"slices"
	"time"

	"goprof/profile"
)

// Native memory is a process's memory outside of its heap: that of native libraries, direct buffers, stacks, and the
// JVM itself. It grows while a JVM starts, and hardly later. The rule subtracts the heap's resident pages, not its
// committed size, because the heap may first touch a page long after it has committed it. Metadata of classes and
// compiled code have limits of their own, and are not counted. Pages of files are not counted either.
const (
	leastGrowth = 32 << 20 // bytes in all
	growthRate  = 4 << 20  // bytes a second
	// eachThird is the least part of the growth in each third of the time. A buffer that is allocated once is not a
	// leak.
	eachThird = 0.15
	// leastMemories is the number of readings that three thirds of the time need.
	leastMemories = 4
)

func nativeGrowth(x *exam) *suspicion {
	if x.Stopped {
		return nil
	}
	points := x.outside()
	if len(points) == 0 {
		return x.cannotTell("how much of its memory is in the heap could not be read (/proc/PID/pagemap)")
	} else if len(points) < leastMemories {
		return x.cannotTell(fmt.Sprintf("its memory was read %d times in this time, and growth shows in %d readings only",
			len(points), leastMemories))
	}
	first, last := points[0], points[len(points)-1]
	grown, over := last.bytes-first.bytes, last.at.Sub(first.at).Seconds()
	if grown < leastGrowth || grown < growthRate*over {
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
	from, to := x.Memory[0], x.lastMemory()
	s := &suspicion{sure: 0.8, severity: profile.Warning,
		claim: fmt.Sprintf("Memory outside of the heap grows: by %s in %s (%s a second).", size(uint64(grown)),
			seconds(to.At.Sub(from.At)), size(uint64(grown/over))),
		next: fmt.Sprintf("goprof memory %d -n 6 --every 10s  (which part grows); goprof record --pid %d --event malloc "+
			"-d 30s  (who allocates it)", x.PID, x.PID)}
	s.evidence = append(growersText(from, to), x.roomText(grown/over)...)
	return s
}

// growersText names the parts that grew, the largest growth first, and then direct buffers.
func growersText(from, to *profile.Memory) (lines []string) {
	grown := map[string]int64{}
	for i := range to.Parts {
		p := &to.Parts[i]
		before := uint64(0)
		if q := from.Part(p.Name); q != nil {
			before = q.Resident
		}
		if p.Resident > before+leastGrowth/8 {
			grown[p.Name] = int64(p.Resident - before)
		}
	}
	for _, name := range profile.ByCount(grown) {
		after := to.Part(name).Resident
		lines = append(lines, fmt.Sprintf("%s grew by %s to %s", name, size(uint64(grown[name])), size(after)))
	}
	if a, b := from.Direct, to.Direct; a != nil && b != nil && b.Reserved > a.Reserved {
		lines = append(lines, fmt.Sprintf("of that in direct buffers: %s, then %s", size(a.Reserved), size(b.Reserved)))
	}
	return lines
}

// outsidePoint is the memory outside of the heap at one reading.
type outsidePoint struct {
	at    time.Time
	bytes float64
}

// hasLimit are the parts that are not counted: the heap, and parts with limits of their own.
var hasLimit = []string{profile.HeapPartOfMemory, profile.Metaspace, profile.ClassSpace, profile.CodeCache}

// outside returns the memory outside of the heap at each reading.
func (x *exam) outside() (points []outsidePoint) {
	for _, m := range x.Memory {
		p := outsidePoint{at: m.At}
		for i := range m.Parts {
			if !slices.Contains(hasLimit, m.Parts[i].Name) {
				p.bytes += float64(m.Parts[i].Anonymous)
			}
		}
		points = append(points, p)
	}
	return points
}

// roomText says when the control group's memory will be full.
func (x *exam) roomText(rate float64) []string {
	used, ok := x.last.Cgroup.Memory.Used.Get()
	most, ok2 := x.last.Cgroup.Memory.Max.Get()
	cache, ok3 := x.last.Cgroup.Cache.Get()
	used -= min(used, cache)
	if !ok || !ok2 || !ok3 || most <= used {
		return nil
	}
	return []string{fmt.Sprintf("its control group has %s of %s: full in %.0f s at this rate", size(used), size(most),
		float64(most-used)/rate)}
}
