//go:build linux

package vitals

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/process/maybe"
	"goprof/sampler/session"
	"goprof/testdata/jvmtest"
)

// patient is one JVM of truth.Vitals and our view of it.
type patient struct {
	*jvmtest.JVM
	t *testing.T
	v *Vitals
}

func attach(t *testing.T, jdk jvmtest.JDK, options ...string) *patient {
	t.Helper()
	p := &patient{JVM: jvmtest.Start(t, jdk, "truth.Vitals", options...), t: t}
	s, err := session.Attach(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if p.v, err = Open(s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.v.Close)
	return p
}

func (p *patient) read() *Reading {
	p.t.Helper()
	r, err := p.v.Read()
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// beans is what the JVM says of itself: lines of a number and a name.
func (p *patient) beans(command string) map[string]uint64 {
	p.t.Helper()
	told := map[string]uint64{}
	for _, line := range p.Command(command) {
		number, name, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 {
			told[name] = uint64(n)
		}
	}
	return told
}

// near fails if a fact is not known, or further than that from what the JVM said before and after.
func (p *patient) near(what string, got maybe.Value[uint64], before, after, slack uint64) {
	p.t.Helper()
	low, high := min(before, after), max(before, after)
	if n, ok := got.Get(); !ok || n+slack < low || n > high+slack {
		p.t.Errorf("%s is %v, the JVM said %d and then %d (%d may be missing)", what, got, before, after, slack)
	}
}

// collectorFlags are those that a JDK may have; those that it refuses are left out.
var collectorFlags = map[string]string{"Serial": "UseSerialGC", "Parallel": "UseParallelGC", "G1": "UseG1GC",
	"ZGC": "UseZGC", "Shenandoah": "UseShenandoahGC", "CMS": "UseConcMarkSweepGC", "Epsilon": "UseEpsilonGC"}

// has reports whether a JDK has a collector (as Debian builds it).
func has(jdk jvmtest.JDK, collector string) bool {
	switch collector {
	case "ZGC", "Epsilon":
		return jdk.Version >= 11
	case "Shenandoah":
		return jdk.Version >= 11 && jdk.Label == ""
	case "CMS":
		return jdk.Version <= 11
	}
	return true
}

// oldPools are the names of the old generation's pool, by collector.
var oldPools = map[string]string{"Serial": "Tenured Gen", "Parallel": "PS Old Gen", "G1": "G1 Old Gen"}

// TestBeans holds what is read of each collector against what the JVM's own beans say.
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
	p.beans("beans") // what it does the first time loads classes
	before := p.beans("beans")
	r := p.read()
	after := p.beans("beans")
	j := &r.JVM
	if !j.Counters || j.GC.Name != collector {
		t.Errorf("counters %v, collector %q", j.Counters, j.GC.Name)
	}
	// A reading is between two answers of the program, which allocates for them. G1 counts the regions that it allocates
	// in when they are full, and ZGC its pages when it takes them: so do the beans, not always at the same moment.
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
		young := before["heap.used"] - before["used."+pool]
		p.near("young used", j.GC.Young.Used, young, after["heap.used"]-after["used."+pool], slack)
	}
	if collector == "Serial" || collector == "Parallel" { // they may use no survivor space twice: the beans leave it out
		p.near("heap committed", j.GC.Heap.Committed, before["heap.committed"], after["heap.committed"], 64<<20)
	} else if collector != "CMS" && !(collector == "ZGC" && jdk.Version == 11) { // whose tables do not tell it
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
	concurrent := collector == "ZGC" || collector == "Shenandoah" // they may be at work whenever they want to
	if !concurrent && (j.GC.Cause.Or("") != "No GC" ||
		collector != "Epsilon" && !strings.Contains(j.GC.LastCause.Or(""), "System.gc()")) {
		t.Errorf("cause %v, last %v", j.GC.Cause, j.GC.LastCause)
	}
	t.Logf("%v: %+v", r.Took, j.GC)
}

// checkCollections: the beans count the collections that the counters do, collector by collector.
func (p *patient) checkCollections(r *Reading, collector string, before, after map[string]uint64) {
	p.t.Helper()
	byKind := map[CollectorKind]uint64{}
	for _, c := range r.JVM.GC.Collectors {
		byKind[c.Kind] += c.Count
		if c.Count > 0 && (c.Time <= 0 || c.LastEnd.Or(0) <= 0) || c.UnderWay || c.Kind == OtherCollections {
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
	if paused, ok := r.JVM.GC.Paused.Get(); !ok || paused {
		p.t.Errorf("paused: %v", r.JVM.GC.Paused)
	}
	all := byKind[YoungCollections] + byKind[FullCollections]
	// A full collection of Serial may begin with a young one, which the heap does not count; G1's heap counts the
	// pauses of its concurrent cycles, too, since 26 or so.
	p.near("collections of the heap", r.JVM.GC.Collections, all, all+byKind[ConcurrentPauses], byKind[FullCollections])
}

// checkCounts compares classes and threads.
func (p *patient) checkCounts(r *Reading, before, after map[string]uint64) {
	p.t.Helper()
	j := &r.JVM
	p.near("classes", j.Classes.Loaded, before["classes.loaded"], after["classes.loaded"], 0)
	p.near("classes unloaded", j.Classes.Unloaded, before["classes.unloaded"], after["classes.unloaded"], 0)
	p.near("threads", j.Threads.Live, before["threads.live"], after["threads.live"], 0)
	p.near("daemons", j.Threads.Daemon, before["threads.daemon"], after["threads.daemon"], 0)
	p.near("peak", j.Threads.Peak, before["threads.peak"], after["threads.peak"], 0)
	p.near("started", j.Threads.Started, before["threads.started"], after["threads.started"], 0)
	if j.GC.Name != "ZGC" || j.References.Finalizers.IsKnown() { // after a collection of ZGC the way there is stale
		p.near("finalizers", j.References.Finalizers, before["finalizers"], after["finalizers"], 0)
	}
	if n, ok := j.Metaspace.Used.Get(); !ok || n == 0 {
		p.t.Errorf("metaspace: %+v", j.Metaspace)
	}
	if n, ok := j.Safepoints.Count.Get(); !ok || n == 0 && j.GC.Name != "Epsilon" {
		p.t.Errorf("safepoints: %+v", j.Safepoints)
	}
}

// checkCode compares the code cache, part by part: compilers are at work meanwhile.
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

// TestAllocated: what each thread has allocated is what the JVM says, to the byte.
func TestAllocated(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, flag := range []string{"-XX:+UseSerialGC", "-XX:+UseG1GC", "-XX:-UseTLAB", "-XX:+UseZGC"} {
			if flag == "-XX:+UseZGC" && !has(jdk, "ZGC") {
				continue
			}
			t.Run(flag, func(t *testing.T) {
				p := attach(t, jdk, "-Xmx256m", "-XX:+UnlockExperimentalVMOptions", flag)
				p.Command("allocators 20")
				truth := p.beans("allocated")
				r := p.read()
				found := 0
				for _, th := range r.Threads {
					want, ok := truth[th.Name]
					if !ok {
						continue
					}
					found++
					if got, ok := th.Allocated.Get(); !ok || got != want || th.Role != Application {
						t.Errorf("%s (%s) has allocated %v bytes, the JVM says %d", th.Name, th.Role, th.Allocated, want)
					}
				}
				if found != 20 || len(truth) != 20 {
					t.Errorf("%d threads of %d are found", found, len(truth))
				}
			})
		}
	})
}

// TestFinalizers: a finalizer that never ends lets others wait.
func TestFinalizers(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, name := range []string{"Serial", "G1", "ZGC", "Shenandoah"} {
			if !has(jdk, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				p := attach(t, jdk, "-Xmx256m", "-XX:+UnlockExperimentalVMOptions", "-XX:+"+collectorFlags[name])
				if n := p.read().JVM.References.Finalizers; n.Or(1) != 0 {
					t.Errorf("%v wait before any is made", n)
				}
				p.Command("finalizers 500")
				truth := p.beans("beans")["finalizers"]
				r := p.read()
				if n, ok := r.JVM.References.Finalizers.Get(); name == "ZGC" && !ok {
					t.Log("the way to the queue is stale")
				} else if !ok || n != truth || n < 500 {
					t.Errorf("%v wait, the JVM says %d", r.JVM.References.Finalizers, truth)
				}
				if n, ok := r.JVM.References.Pending.Get(); !ok && name != "ZGC" && jdk.Label != "stripped" || n > 10 {
					t.Errorf("pending: %v", r.JVM.References.Pending)
				}
			})
		}
	})
}

// TestClasses: classes that are loaded are counted, and errors of the VM where libjvm.so has symbols.
func TestClasses(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		p := attach(t, jdk, "-Xmx128m")
		p.Command("classes 10")
		a := p.read()
		p.Command("classes 700")
		p.Command("overflow")
		p.Command("memory")
		p.Command("garbage 300")
		b := p.read()
		n, ok := grown(a.JVM.Classes.Loaded, b.JVM.Classes.Loaded).Get()
		if !ok || n < 700 || n > 1000 {
			t.Errorf("%d classes, %v", n, ok)
		}
		if rate := Between(a, b).ClassesLoaded; !rate.IsKnown() {
			t.Errorf("rate %v", rate)
		}
		symbols := b.JVM.Safepoints.State.IsKnown()
		if jdk.Version > 8 && jdk.Label != "stripped" && !symbols {
			t.Error("no symbols")
		}
		overflows, known := b.JVM.Errors.StackOverflow.Get()
		memory, _ := b.JVM.Errors.OutOfMemory.Get()
		if symbols && (!known || overflows != 1 || memory == 0) {
			t.Errorf("%+v", b.JVM.Errors)
		}
		if c, ok := b.JVM.Code.Compiling.Get(); symbols && (!ok || !c) {
			t.Errorf("compiling: %v", b.JVM.Code.Compiling)
		}
		rates := Between(a, b)
		if rates.Allocated.Or(0) == 0 || rates.CPU.Or(0) == 0 || len(rates.Threads) < 5 || !rates.Busy.IsKnown() {
			t.Errorf("%+v", rates)
		}
		for _, role := range []Role{Compilation, VMInternal, Application} {
			if !hasRole(b, role) {
				t.Errorf("no thread is %s", role)
			}
		}
	})
}

func hasRole(r *Reading, role Role) bool {
	for i := range r.Threads {
		if r.Threads[i].Role == role {
			return true
		}
	}
	return false
}

// TestHoldOut: a thread in a loop without a poll keeps a safepoint waiting, and is named. How long it does is the
// machine's: readings go on until one shows it.
func TestHoldOut(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		p := attach(t, jdk, "-Xmx128m", "-XX:+UseParallelGC", "-XX:-TieredCompilation", "-XX:-UseOnStackReplacement")
		if !p.read().JVM.Safepoints.State.IsKnown() {
			if jdk.Version != 8 && jdk.Label != "stripped" {
				t.Fatal("the state of safepoints is not known")
			}
			return // this libjvm.so has no symbols
		}
		p.Command("hold")
		var seen, named, operation int
		for range 400 {
			r := p.read()
			if r.JVM.Safepoints.State.Or("") == BeginsSafepoint {
				seen++
				for _, tid := range r.JVM.Safepoints.HoldOuts {
					if threadName(r, tid) == "holds-out" {
						named++
					}
				}
				if len(r.JVM.Safepoints.HoldOuts) > 1 {
					t.Logf("hold-outs: %v", r.JVM.Safepoints.HoldOuts)
				}
				if strings.Contains(r.JVM.Safepoints.Operation.Or(""), "ParallelGC") ||
					strings.Contains(r.JVM.Safepoints.Operation.Or(""), "ParallelCollect") {
					operation++
				}
			} else if seen > 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if seen == 0 || named < seen-1 || operation == 0 && jdk.Version > 8 {
			t.Errorf("of %d readings in which a safepoint began, %d named the thread and %d the operation", seen, named,
				operation)
		}
	})
}

func threadName(r *Reading, tid int) string {
	for i := range r.Threads {
		if r.Threads[i].TID == tid {
			return r.Threads[i].Name
		}
	}
	return ""
}

// TestPinned: a virtual thread that parks in a class initialiser holds its carrier; others that park do not.
func TestPinned(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, flag := range []string{"-XX:+UseG1GC", "-XX:+UseZGC"} {
			t.Run(flag, func(t *testing.T) {
				if !has(jdk, "ZGC") && flag != "-XX:+UseG1GC" {
					return
				}
				p := attach(t, jdk, "-Xmx256m", "-XX:+UnlockExperimentalVMOptions", flag)
				if jdk.Version < 21 {
					if v := p.read().JVM.Virtual; v.Mounted.IsKnown() || v.Pinned != nil {
						t.Errorf("%+v", v)
					}
					return
				}
				p.Command("pin 5")
				var r *Reading
				for range 200 {
					if r = p.read(); len(r.JVM.Virtual.Pinned) > 0 && r.JVM.Virtual.Mounted.Or(0) == 1 {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				v := r.JVM.Virtual
				if len(v.Pinned) != 1 || v.Pinned[0].Name != "virtual-0" || v.Pinned[0].State != "pinned" ||
					!strings.HasPrefix(threadName(r, v.Pinned[0].Carrier), "ForkJoinPool") {
					t.Errorf("%+v", v)
				}
			})
		}
	})
}

// TestNoCounters: a JVM that keeps no counters is read as far as its structures tell.
func TestNoCounters(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		p := attach(t, jdk, "-Xmx128m", "-XX:-UsePerfData", "-XX:+UseG1GC")
		r := p.read()
		j := &r.JVM
		if j.Counters || j.Safepoints.Count.IsKnown() || j.Classes.Loaded.IsKnown() || j.GC.OldAfter.IsKnown() {
			t.Errorf("%+v", j)
		}
		if !j.GC.Heap.Used.IsKnown() || !j.GC.Collections.IsKnown() || !j.Threads.Live.IsKnown() ||
			!j.Code.Total.Used.IsKnown() ||
			!j.References.Finalizers.IsKnown() || j.Threads.Live.Or(0) < 3 {
			t.Errorf("%+v", j)
		}
	})
}

// TestGone: a process that ends is told.
func TestGone(t *testing.T) {
	jdk := jvmtest.JDKs(t)[0]
	p := attach(t, jdk)
	p.Kill()
	if _, err := p.v.Read(); !errors.Is(err, process.ErrGone) {
		t.Errorf("%v", err)
	}
}

// TestStopped: a JVM that is stopped answers nobody, and is read all the same.
func TestStopped(t *testing.T) {
	p := attach(t, jvmtest.JDKs(t)[0], "-Xmx128m")
	if err := unix.Kill(p.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var r *Reading
	for range 500 { // its threads stop one after the other
		if r = p.read(); !slices.ContainsFunc(r.Threads, func(th Thread) bool { return th.State != 'T' }) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := unix.Kill(p.PID, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if !r.JVM.GC.Heap.Used.IsKnown() || !r.JVM.Classes.Loaded.IsKnown() || r.Threads[0].State != 'T' ||
		!r.JVM.References.Finalizers.IsKnown() {
		t.Errorf("%+v", r.JVM)
	}
}

// BenchmarkRead measures a reading of a JVM with 200 threads.
func BenchmarkRead(b *testing.B) {
	for _, jdk := range jvmtest.JDKs(b) {
		b.Run(jdk.String(), func(b *testing.B) {
			jvm := jvmtest.Start(b, jdk, "truth.Vitals", "-Xmx1g")
			jvm.Command(fmt.Sprintf("allocators %d", 200))
			s, err := session.Attach(jvm.PID)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			v, err := Open(s)
			if err != nil {
				b.Fatal(err)
			}
			defer v.Close()
			for b.Loop() {
				if _, err := v.Read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpen measures what comes before the first reading: libjvm's symbols are read.
func BenchmarkOpen(b *testing.B) {
	for _, jdk := range jvmtest.JDKs(b) {
		b.Run(jdk.String(), func(b *testing.B) {
			jvm := jvmtest.Start(b, jdk, "truth.Vitals", "-Xmx128m")
			for b.Loop() {
				s, err := session.Attach(jvm.PID)
				if err != nil {
					b.Fatal(err)
				}
				v, err := Open(s)
				if err != nil {
					b.Fatal(err)
				}
				v.Close()
				s.Close()
			}
		})
	}
}
