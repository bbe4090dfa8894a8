package triage

import (
	"fmt"

	"goprof/profile"
)

// The kernel kills a process whose control group has no memory left, and the process logs nothing. Pages of files do
// not count, because the kernel reclaims them first.
const nearGroupLimit = 0.95

func memoryLimit(x *exam) *suspicion {
	if limited, known := x.last.Cgroup.MemoryLimited.Get(); !known {
		return x.cannotTell("the memory limit of its control group could not be read")
	} else if !limited {
		return nil
	}
	for _, r := range x.Readings {
		used, ok := r.Cgroup.Memory.Used.Get()
		most, ok2 := r.Cgroup.Memory.Max.Get()
		cache, ok3 := r.Cgroup.Cache.Get()
		if !ok3 {
			return x.cannotTell("how much of its control group's memory is a cache of files could not be read")
		}
		if !ok || !ok2 || most == 0 || float64(used-min(used, cache)) < nearGroupLimit*float64(most) {
			return nil
		}
	}
	c := &x.last.Cgroup
	used, most := c.Memory.Used.Or(0)-min(c.Memory.Used.Or(0), c.Cache.Or(0)), c.Memory.Max.Or(0)
	s := &suspicion{sure: 0.92, severity: profile.Warning,
		claim: fmt.Sprintf("The control group's memory is nearly used up: %s of %s. Beyond it the kernel kills a process.",
			size(used), size(most)),
		next: fmt.Sprintf("goprof memory %d -n 6 --every 10s  (where it is, and what grows); then a smaller -Xmx, or a "+
			"higher limit", x.PID)}
	if heap := x.last.JVM.GC.Heap; heap.Max.IsKnown() {
		s.evidence = append(s.evidence, fmt.Sprintf("the heap has %s of the %s that it may have",
			size(heap.Committed.Or(heap.Used.Or(0))), size(heap.Max.Or(0))))
	}
	s.evidence = append(s.evidence, x.partsText()...)
	if n, ok := c.Kills.Get(); ok {
		s.evidence = append(s.evidence, fmt.Sprintf("%d processes of the group were killed so far", n))
	}
	return s
}

const mostParts = 4

func (x *exam) partsText() (lines []string) {
	if len(x.Memory) == 0 {
		return nil
	}
	m := x.lastMemory()
	for i := range m.Parts[:min(len(m.Parts), mostParts)] {
		lines = append(lines, fmt.Sprintf("%s are in %s", size(m.Parts[i].Resident), m.Parts[i].Name))
	}
	return lines
}
