package vmstructs

import (
	"strings"

	"goprof/process/maybe"
)

// CollectorKind says what a collector of the JVM's counters collects.
type CollectorKind string

const (
	// YoungCollections are pauses for the young generation, with G1 also those for parts of the old one.
	YoungCollections CollectorKind = "young"
	FullCollections  CollectorKind = "full" // pauses for the whole heap
	// ConcurrentPauses are the pauses of a collection that otherwise runs beside the program. With ZGC and Shenandoah
	// the JVM counts whole cycles here, or pauses: the collector's name says which.
	ConcurrentPauses CollectorKind = "concurrent"
	OtherCollections CollectorKind = "other" // its name says what
)

// KindsOfCollectors maps the names of a collector's counters to the kinds of collections that they count (gc/*/,
// CollectorCounters). Up to 11 the counters have the names of C++ classes.
//
//   - "Shenandoah full" counts all pauses of a cycle that runs beside the program.
//   - "CMS" counts full collections. Up to 8 it also counts the short pauses of each cycle, since 9 "CMS stop-the-world
//     phases" counts these.
//   - ZGC's names begin with Z. Its "minor" and "major" count pauses of cycles beside the program.
func KindsOfCollectors(names []string) []CollectorKind {
	phases := false
	for _, name := range names {
		phases = phases || strings.HasPrefix(name, "CMS stop-the-world phases")
	}
	kinds := make([]CollectorKind, len(names))
	for i, name := range names {
		kinds[i] = kindOfCollector(name, phases)
	}
	return kinds
}

// kindOfCollector: phases says that the short pauses of CMS have a counter of their own.
func kindOfCollector(name string, phases bool) CollectorKind {
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(name, part) {
				return true
			}
		}
		return false
	}
	switch {
	case strings.HasPrefix(name, "Z"), strings.HasPrefix(name, "Shenandoah"), has("concurrent", "stop-the-world phases"):
		return ConcurrentPauses
	case name == "CMS" && !phases:
		return ConcurrentPauses
	case name == "CMS", name == "MSC", name == "PSParallelCompact", has("full"):
		return FullCollections
	case name == "Copy", name == "PCopy", name == "PSScavenge", has("young", "incremental"):
		return YoungCollections
	}
	return OtherCollections
}

// OldAfter says how full the old generation was when the last collection had ended. Collectors without generations have
// their whole heap there. ZGC calls a generation "old" and does not keep its counter up to date.
func (c Counters) OldAfter(collector string) maybe.Value[uint64] {
	if name, ok := c.Text("sun.gc.generation.1.name"); !ok || name != "old" || collector == "ZGC" {
		return maybe.Value[uint64]{}
	}
	return c.amount("sun.gc.generation.1.space.0.used")
}

// HeapAfter says the same of the whole heap. Only G1 writes the counters of the young generation at the end of a
// collection. Those of other collectors are sampled each 50 ms, whatever has happened since.
func (c Counters) HeapAfter(collector string) maybe.Value[uint64] {
	if collector != "G1" {
		return maybe.Value[uint64]{}
	}
	old, known := c.OldAfter(collector).Get()
	sum := maybe.If(old, known)
	for _, space := range []string{"0", "1", "2"} {
		n, ok := c.amount("sun.gc.generation.0.space." + space + ".used").Get()
		before, known := sum.Get()
		sum = maybe.If(before+n, ok && known)
	}
	return sum
}

// amount is a counter that cannot be negative.
func (c Counters) amount(name string) maybe.Value[uint64] {
	n, ok := c.Long(name)
	return maybe.If(uint64(max(n, 0)), ok && n >= 0)
}
