package vitals

import "strings"

// kindOf tells what a collector collects, by the name of its counters (gc/*/, CollectorCounters). Up to 11 the names
// are those of classes.
//
//   - "Shenandoah full" counts all pauses of a cycle that runs beside the program.
//   - "CMS" counts full collections, and up to 8 the short pauses of each cycle, too.
//   - ZGC's names begin with Z. Its "minor" and "major" count pauses of cycles beside the program.
func kindOf(name string, phases bool) CollectorKind {
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
