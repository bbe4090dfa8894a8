//go:build linux

package vitals

import (
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/process/maybe"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

// TestBeans compares what goprof reads of each collector with what the JVM's own beans say.
func TestBeans(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, name := range []string{"Serial", "Parallel", "G1", "ZGC", "Shenandoah", "CMS", "Epsilon"} {
			if !has(jdk, name) {
				continue
			}
			t.Run(name, func(t *testing.T) { testBeans(t, jdk, name) })
		}
	})
}

func testBeans(t *testing.T, jdk jvmtest.JDK, collector string) {
	heap := "-Xmx256m"
	if collector == "Epsilon" {
		heap = "-Xmx1g"
	}
	p := attach(t, jdk, heap, "-XX:+UnlockExperimentalVMOptions", "-XX:+"+collectorFlags[collector])
	p.Command("keep 30")
	p.Command("garbage 100")
	p.Command("gc")
	p.Command("keep 5")
	p.beans("beans") // the first time, this command loads classes
	before := p.beans("beans")
	concurrent := collector == "ZGC" || collector == "Shenandoah" // these collect whenever they want to
	r := p.read()
	for range 600 { // this bounds a hang
		if !concurrent || !slices.ContainsFunc(r.JVM.GC.Collectors, func(c Collector) bool { return c.UnderWay }) {
			break
		}
		time.Sleep(100 * time.Millisecond)
		r = p.read()
	}
	after := p.beans("beans")
	j := &r.JVM
	if j.GC.Name != collector {
		t.Errorf("collector %q", j.GC.Name)
	}
	// A reading lies between two answers of the program, and the program allocates for its answers. G1 counts a region
	// when the region is full, and ZGC counts a page when ZGC takes it. The beans do the same, but not always at the
	// same moment.
	slack := uint64(1 << 20)
	if collector == "G1" || collector == "ZGC" || collector == "Shenandoah" {
		slack = 8 << 20
	}
	if collector != "CMS" {
		p.near("heap used", j.GC.Heap.Used, before["heap.used"], after["heap.used"], slack)
	}
	if limit := j.GC.Heap.Max; limit.Or(0) < 256<<20 {
		t.Errorf("heap max is %v", limit)
	}
	if pool, ok := oldPools[collector]; ok {
		p.near("old used", j.GC.Old.Used, before["used."+pool], after["used."+pool], slack)
		p.near("old committed", j.GC.Old.Committed, before["committed."+pool], after["committed."+pool], slack)
		p.near("old max", j.GC.Old.Max, before["max."+pool], after["max."+pool], 0)
		p.near("old after", j.GC.OldAfter, before["after."+pool], before["used."+pool], slack)
	}
	// these have a survivor space that is not in use: the beans leave it out
	if collector == "Serial" || collector == "Parallel" {
		p.near("heap committed", j.GC.Heap.Committed, before["heap.committed"], after["heap.committed"], 64<<20)
	} else if collector != "CMS" && !(collector == "ZGC" && jdk.Version == 11) { // these have no tables that tell it
		p.near("heap committed", j.GC.Heap.Committed, before["heap.committed"], after["heap.committed"], slack)
	}
	if collector != "Serial" && collector != "Epsilon" && !hasRole(r, Collection) { // Serial collects in the VM thread
		t.Error("no thread is a collector's")
	}
	p.checkCollections(r, collector, before, after)
	p.checkCounts(r, before, after)
	p.checkCode(r, before, after)
	if d, ok := j.Uptime.Get(); !ok || d <= 0 || d > time.Hour {
		t.Errorf("uptime %v", j.Uptime)
	}
	if !concurrent && (j.GC.Cause.Or("") != "No GC" ||
		collector != "Epsilon" && !strings.Contains(j.GC.LastCause.Or(""), "System.gc()")) {
		t.Errorf("cause %v, last %v", j.GC.Cause, j.GC.LastCause)
	}
	t.Logf("%v: %+v", r.Took, j.GC)
}

// checkCollections: the beans and the counters have the same number of collections, collector by collector.
func (p *patient) checkCollections(r *Reading, collector string, before, after map[string]uint64) {
	p.t.Helper()
	byKind := map[CollectorKind]uint64{}
	for _, c := range r.JVM.GC.Collectors {
		byKind[c.Kind] += c.Count
		if c.Count > 0 && c.Time <= 0 || c.UnderWay || c.Kind == vmstructs.OtherCollections {
			p.t.Errorf("%+v", c)
		}
	}
	names := map[string][2]string{"Serial": {"Copy", "MarkSweepCompact"}, "Parallel": {"PS Scavenge", "PS MarkSweep"},
		"G1": {"G1 Young Generation", "G1 Old Generation"}}[collector]
	if names[0] == "" {
		return
	}
	for i, kind := range []CollectorKind{YoungCollections, FullCollections} {
		bean := "count." + names[i]
		p.near(string(kind)+" collections", maybe.Known(byKind[kind]), before[bean], after[bean], 0)
	}
	all := byKind[YoungCollections] + byKind[FullCollections]
	// A full collection of Serial may begin with a young one, which the heap does not count. Since about JDK 26, G1's
	// heap counts the pauses of its concurrent cycles, too.
	p.near("collections of the heap", r.JVM.GC.Collections, all, all+byKind[vmstructs.ConcurrentPauses],
		byKind[FullCollections])
}

// checkCounts compares classes and threads.
func (p *patient) checkCounts(r *Reading, before, after map[string]uint64) {
	p.t.Helper()
	j := &r.JVM
	p.near("classes", j.Classes.Loaded, before["classes.loaded"], after["classes.loaded"], 0)
	p.near("classes unloaded", j.Classes.Unloaded, before["classes.unloaded"], after["classes.unloaded"], 0)
	p.near("threads", j.Threads.Live, before["threads.live"], after["threads.live"], 0)
	p.near("started", j.Threads.Started, before["threads.started"], after["threads.started"], 0)
	// after a collection of ZGC, the way to the finalizers is stale
	if j.GC.Name != "ZGC" || j.References.Finalizers.IsKnown() {
		p.near("finalizers", j.References.Finalizers, before["finalizers"], after["finalizers"], 0)
	}
	if n, ok := j.Metaspace.Used.Get(); !ok || n == 0 {
		p.t.Errorf("metaspace: %+v", j.Metaspace)
	}
	if n, ok := j.Safepoints.Count.Get(); !ok || n == 0 && j.GC.Name != "Epsilon" {
		p.t.Errorf("safepoints: %+v", j.Safepoints)
	}
}

// checkCode compares the code cache, part by part. Compilers are at work meanwhile.
func (p *patient) checkCode(r *Reading, before, after map[string]uint64) {
	p.t.Helper()
	const slack = 256 << 10
	if len(r.JVM.Code.Heaps) == 0 {
		p.t.Error("no code heaps")
	}
	for _, h := range r.JVM.Code.Heaps {
		pool := h.Name
		if pool == "" || pool == "CodeCache" {
			pool = "Code Cache"
			if _, ok := before["used.CodeCache"]; ok {
				pool = "CodeCache"
			}
		}
		p.near(pool+" used", h.Used, before["used."+pool], after["used."+pool], slack)
		p.near(pool+" committed", h.Committed, before["committed."+pool], after["committed."+pool], slack)
		p.near(pool+" max", h.Max, before["max."+pool], after["max."+pool], 0)
		if n, ok := h.Refused.Get(); ok && n != 0 || !ok && p.JDK.Version > 8 {
			p.t.Errorf("%s refused %v", pool, h.Refused)
		}
	}
}
