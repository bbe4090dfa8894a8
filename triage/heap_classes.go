package triage

import (
	"cmp"
	"fmt"
	"slices"

	"goprof/profile"
)

// mostClasses limits how many classes of the heap are named. A class is named if it fills at least leastOfHeap.
const (
	mostClasses = 5
	leastOfHeap = 0.05
)

// classesText names the classes that fill the old generation, or the whole heap if it has no generations.
func (x *exam) classesText() (lines []string) {
	if x.Heap == nil {
		return nil
	}
	parts, where := []string{"old", "humongous"}, "the old generation"
	if x.Heap.Part("old") == nil {
		parts, where = []string{"heap", "young", "humongous"}, "the heap"
	}
	used := 0.0
	for _, name := range parts {
		if p := x.Heap.Part(name); p != nil {
			used += float64(p.Used)
		}
	}
	bytes := func(c *profile.HeapClass) (n float64) {
		for _, name := range parts {
			n += c.Parts[name].Bytes
		}
		return n
	}
	classes := slices.Clone(x.Heap.Classes)
	slices.SortStableFunc(classes, func(a, b *profile.HeapClass) int { return cmp.Compare(bytes(b), bytes(a)) })
	for _, c := range classes[:min(len(classes), mostClasses)] {
		if n := bytes(c); !c.Filler && n >= leastOfHeap*used && used > 0 {
			lines = append(lines, fmt.Sprintf("%s of %s is %s (%s)", percent(n/used), where, c.Name, size(uint64(n))))
		}
	}
	return lines
}
