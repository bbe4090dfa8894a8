package vmstructs

import (
	"slices"
	"strings"

	"goprof/process/maybe"
)

// CollectorKind is the kind of collections that a collector in the JVM's counters makes.
type CollectorKind string

const (
	// YoungCollections are pauses for the young generation, and with G1 also pauses for parts of the old one.
	YoungCollections CollectorKind = "young"
	FullCollections  CollectorKind = "full" // pauses for the whole heap
	// ConcurrentPauses are the pauses of a collection that otherwise runs concurrently with the program. With ZGC and
	// Shenandoah the JVM counts either whole cycles here, or pauses. The collector's name shows which.
	ConcurrentPauses CollectorKind = "concurrent"
	OtherCollections CollectorKind = "other" // the name shows the kind
)

// KindsOfCollectors maps the names of a collector's counters to the kinds of collections that they count (gc/*/,
// CollectorCounters). Up to 11 the counters have the names of C++ classes.
//
//   - "Shenandoah full" counts all pauses of a concurrent cycle.
//   - "CMS" counts full collections. Up to 8 it also counts the short pauses of each cycle. Since 9, "CMS
//     stop-the-world phases" counts these.
//   - ZGC's names begin with Z. Its "minor" and "major" count pauses of concurrent cycles.
func KindsOfCollectors(names []string) []CollectorKind {
	phases := slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "CMS stop-the-world phases") })
	kinds := make([]CollectorKind, len(names))
	for i, name := range names {
		kinds[i] = kindOfCollector(name, phases)
	}
	return kinds
}

// kindOfCollector returns the kind that one counter counts. phases: the short pauses of CMS have a counter of their
// own.
func kindOfCollector(name string, phases bool) CollectorKind {
	has := func(parts ...string) bool { return anyOf(strings.Contains, name, parts...) }
	switch {
	case anyOf(strings.HasPrefix, name, "Z", "Shenandoah"), has("concurrent", "stop-the-world phases"):
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

// OldAfter returns how full the old generation was at the end of the last collection, or the whole heap with collectors
// without generations. ZGC calls a generation "old", but does not update its counter.
func (c Counters) OldAfter(collector string) maybe.Value[uint64] {
	if name, ok := c.Text("sun.gc.generation.1.name"); !ok || name != "old" || collector == "ZGC" {
		return maybe.Value[uint64]{}
	}
	return c.amount("sun.gc.generation.1.space.0.used")
}

// HeapAfter returns how full the whole heap was at the end of the last collection. Only G1 writes the counters of the
// young generation at the end of a collection. Other collectors write them every 50 ms.
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
