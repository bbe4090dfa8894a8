package triage

import (
	"fmt"

	"goprof/profile"
	"goprof/profile/naming"
)

// gcReason is a reason for collections, and its cure.
type gcReason struct{ text, cure string }

// gcReasons are HotSpot's causes (gc/shared/gcCause.cpp, GCCause::to_string; JDK 8 to 27) that a larger heap would not
// remove.
var gcReasons = map[string]gcReason{
	"System.gc()": {"the program asks for it (System.gc())", "leave the call out; -XX:+DisableExplicitGC; with G1 " +
		"-XX:+ExplicitGCInvokesConcurrent"},
	"Metadata GC Threshold": {"the metadata of classes grew to the threshold at which the JVM looks for classes to unload",
		"a larger -XX:MetaspaceSize if it has room to grow; else the code that defines classes all the time"},
	"Metadata GC Clear Soft References": {"the metadata of classes is full",
		"a larger -XX:MaxMetaspaceSize, or the leak of class loaders mended"},
	"Last ditch collection": {"the metadata of classes is full",
		"a larger -XX:MaxMetaspaceSize, or the leak of class loaders mended"},
	"G1 Humongous Allocation": {"the program allocates objects of half a region of G1 or more (humongous ones)",
		"a larger -XX:G1HeapRegionSize (8m, 16m, 32m), or smaller arrays"},
	"GCLocker Initiated GC": {"native code held arrays (GetPrimitiveArrayCritical) while the heap was full",
		"shorter critical sections in native code; a JDK of 22 or later, where G1 does not wait for them"},
	"Heap Inspection Initiated GC": {"a tool asks for it (jmap -histo:live, jcmd GC.class_histogram)",
		"find the tool"},
	"Heap Dump Initiated GC":          {"a tool asks for it (a heap dump)", "find the tool"},
	"Diagnostic Command":              {"a tool asks for it (jcmd GC.run)", "find the tool"},
	"JvmtiEnv ForceGarbageCollection": {"an agent of the JVM asks for it (JVMTI)", "find the agent (-agentpath)"},
	"CodeCache GC Threshold":          {"the code cache grew to a threshold", "a larger -XX:ReservedCodeCacheSize"},
	"CodeCache GC Aggressive":         {"the code cache is nearly full", "a larger -XX:ReservedCodeCacheSize"},
	"G1 Periodic Collection":          {"-XX:G1PeriodicGCInterval asks for it", "a longer interval"},
}

// askedCauses are those of gcReasons by which the program or a tool requests a collection.
var askedCauses = []string{"System.gc()", "Heap Inspection Initiated GC", "Heap Dump Initiated GC",
	"Diagnostic Command", "JvmtiEnv ForceGarbageCollection"}

// directReason is for System.gc() from java.nio.Bits.reserveMemory.
var directReason = gcReason{
	"direct memory (ByteBuffer.allocateDirect) is full: java.nio.Bits calls System.gc() to free some",
	"a larger -XX:MaxDirectMemorySize; buffers that are used again; close what holds them"}

// noGC is HotSpot's cause between collections.
const noGC = "No GC"

// gcCauses counts, by cause, the readings that follow a collection. The JVM keeps only the last cause, so each of these
// readings shows one collection.
func (x *exam) gcCauses() (causes map[string]int, all int) {
	causes = map[string]int{}
	for i := 1; i < len(x.Readings); i++ {
		was, now := &x.Readings[i-1].JVM.GC, &x.Readings[i].JVM.GC
		// While a collection is under way, the last cause is "No GC" (CollectedHeap::set_gc_cause).
		name := now.Cause.Or("")
		if name == "" || name == noGC {
			name = now.LastCause.Or(noGC)
		}
		if name != noGC && name != "" && now.Collections.Or(0) != was.Collections.Or(0) {
			causes[name]++
			all++
		}
	}
	return causes, all
}

// gcCause returns the commonest known cause, and its share of the readings that follow a collection.
func (x *exam) gcCause() (cause string, share float64) {
	causes, all := x.gcCauses()
	if all == 0 {
		return "", 0
	}
	cause = profile.ByCount(causes)[0]
	return cause, float64(causes[cause]) / float64(all)
}

// A program that requests collections rarely has a reason: a test, or an hourly run. Requested collections are a
// finding if there were askedLeast during the examination, and askedRate per second. askedSure is the likelihood of a
// finding that rests on that alone.
const (
	askedLeast = 3
	askedRate  = 0.7
	askedSure  = 0.5
)

// askedFor returns the least number of requested collections, or 0 if there were too few to matter.
func (x *exam) askedFor() int {
	causes, _ := x.gcCauses()
	n := 0
	for _, cause := range askedCauses {
		n += causes[cause]
	}
	if n < askedLeast || float64(n) < askedRate*x.Rates.Over.Seconds() || !x.needless() {
		return 0
	}
	return n
}

// reasonShare is the least share of a reason other than a full heap that is reported.
const reasonShare = 0.5

// needless reports whether the JVM collected for a reason that a larger heap would not remove.
func (x *exam) needless() bool {
	cause, share := x.gcCause()
	_, special := gcReasons[cause]
	return special && share >= reasonShare
}

// gcCauseText says why the JVM collected, and returns the cure. cure is empty if only a larger heap would help.
func (x *exam) gcCauseText() (lines []string, cure string) {
	cause, share := x.gcCause()
	if cause == "" {
		return nil, ""
	}
	callers, direct := x.gcCallers()
	reason := gcReasons[cause]
	switch {
	case !x.needless():
		return []string{fmt.Sprintf("why it collected, by the JVM's own word: %s (at %s of the readings)", cause,
			percent(share))}, ""
	case cause == "System.gc()" && direct:
		reason = directReason
	}
	lines = append(lines, fmt.Sprintf("why it collected: %s, at %s of the readings", reason.text, percent(share)))
	if cause == "System.gc()" {
		for _, caller := range profile.ByCount(callers)[:min(2, len(callers))] {
			lines = append(lines, "it is asked for in "+caller)
		}
	}
	return lines, reason.cure
}

// gcCallers returns the methods of the program that were seen waiting for a collection that they had requested. direct
// reports whether most of them wanted direct memory.
func (x *exam) gcCallers() (callers map[string]int64, direct bool) {
	callers = map[string]int64{}
	byDirect, all := int64(0), int64(0)
	count := func(frames []profile.Frame, n int64) {
		for i := len(frames) - 1; i > 0; i-- {
			if name := frames[i].Func.Name; name == "java.lang.Runtime.gc" {
				all += n
				if forDirect(frames[:i]) {
					byDirect += n
				}
				callers[ownMethod(frames[1:i])] += n
				return
			}
		}
	}
	for _, p := range []*profile.Profile{x.Wall, x.CPU} {
		if p != nil {
			p.Each(count)
		}
	}
	return callers, all > 0 && 2*byDirect > all
}

// forDirect reports whether java.nio.Bits requested the collection. Frames are root first.
func forDirect(frames []profile.Frame) bool {
	for i := range frames {
		if frames[i].Func.Name == "java.nio.Bits.reserveMemory" {
			return true
		}
	}
	return false
}

// ownMethod returns the innermost method of the program, or of the class library if there is none.
func ownMethod(frames []profile.Frame) string {
	for i := len(frames) - 1; i >= 0; i-- {
		if f := &frames[i]; f.Kind.Java() && !naming.OfLibrary(f.Func.Name) {
			return f.Func.Name
		}
	}
	return "the class library"
}
