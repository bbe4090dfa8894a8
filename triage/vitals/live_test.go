//go:build linux

package vitals

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/testdata/jvmtest"
)

// TestAllocated: the bytes that each thread has allocated are those that the JVM reports, exactly.
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
				p.v.OnlyWork()
				work := p.read()
				for _, th := range work.Threads {
					if want, ok := truth[th.Name]; ok && (th.Allocated.Or(0) != want || th.Role != Application) {
						t.Errorf("OnlyWork: %s (%s) has allocated %v bytes, the JVM says %d", th.Name, th.Role, th.Allocated, want)
					}
				}
				if !work.Process.CPU.IsKnown() || work.Machine.CPUs.IsKnown() {
					t.Errorf("OnlyWork: the process has %v, the machine %v", work.Process.CPU, work.Machine.CPUs)
				}
				// The JVM collects when it likes to. ZGC first collects while the heap is nearly empty.
				later := p.read().JVM.GC.Collections
				first, known := r.JVM.GC.Collections.Get()
				p.near("OnlyWork: collections", work.JVM.GC.Collections, first, later.Or(0), 0)
				if !known || !later.IsKnown() {
					t.Errorf("%v collections, then %v", r.JVM.GC.Collections, later)
				}
			})
		}
	})
}

// TestFinalizers: a finalizer never ends. Other finalizers wait behind it.
func TestFinalizers(t *testing.T) {
	jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
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
				} else if p.near("finalizers", r.JVM.References.Finalizers, truth, p.beans("beans")["finalizers"], 0); n < 500 {
					t.Errorf("%v wait, the JVM says %d", r.JVM.References.Finalizers, truth)
				}
				if n, ok := r.JVM.References.Pending.Get(); !ok && name != "ZGC" && jdk.Label != "stripped" || n > 10 {
					t.Errorf("pending: %v", r.JVM.References.Pending)
				}
			})
		}
	})
}

// TestClasses: loaded classes are counted. Errors of the VM are counted if libjvm.so has symbols.
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
		symbols := b.JVM.Safepoints.Operation.IsKnown()
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

// TestCompilersOffByFlag: a user has turned the compilers off. goprof does not report a JVM that has given them up.
func TestCompilersOffByFlag(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for flag, compiles := range map[string]bool{"-Xmixed": true, "-Xint": false, "-XX:-UseCompiler": false} {
			code := attach(t, jdk, flag).read().JVM.Code
			if gaveUp, ok := code.GaveUp.Get(); gaveUp || !ok || code.Compiling.Or(true) != compiles {
				t.Errorf("%s: given up %v, compiling %v", flag, code.GaveUp, code.Compiling)
			}
		}
	})
}

// TestHoldOut: a thread in a loop without a poll keeps a safepoint waiting, and goprof names the thread. How long
// the safepoint waits depends on the machine, so readings go on until one shows the thread.
func TestHoldOut(t *testing.T) {
	jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		p := attach(t, jdk, "-Xmx128m", "-XX:+UseParallelGC", "-XX:-TieredCompilation", "-XX:-UseOnStackReplacement")
		if !p.read().JVM.Safepoints.State.IsKnown() {
			if jdk.Label != "stripped" {
				t.Fatal("the state of safepoints is not known")
			}
			return // this libjvm.so has no symbols
		}
		var seen, named, operation int
		// On a busy machine the wait may end before the first reading. Or another operation may wait for the thread.
		for tries := 0; (seen == 0 || operation == 0 && jdk.Version > 8) && tries < 5; tries++ {
			p.Command("hold")
			seen, named, operation = p.watchHoldOut(t)
		}
		if seen == 0 || named < seen-1 || operation == 0 && jdk.Version > 8 {
			t.Errorf("of %d readings in which a safepoint began, %d named the thread and %d the operation", seen, named,
				operation)
		}
	})
}

// watchHoldOut counts the readings during which a safepoint began, and those that named the thread and the
// operation.
func (p *patient) watchHoldOut(t *testing.T) (seen, named, operation int) {
	for range 400 {
		r := p.read()
		safepoints := &r.JVM.Safepoints
		if safepoints.State.Or("") != BeginsSafepoint {
			if seen > 0 {
				return
			}
			time.Sleep(5 * time.Millisecond)
			continue
		}
		seen++
		for _, tid := range safepoints.HoldOuts {
			if threadName(r, tid) == "holds-out" {
				named++
			}
		}
		if len(safepoints.HoldOuts) > 1 {
			t.Logf("hold-outs: %v", safepoints.HoldOuts)
		}
		if name := safepoints.Operation.Or(""); strings.Contains(name, "ParallelGC") ||
			strings.Contains(name, "ParallelCollect") {
			operation++
		}
		time.Sleep(5 * time.Millisecond)
	}
	return
}

func threadName(r *Reading, tid int) string {
	for i := range r.Threads {
		if r.Threads[i].TID == tid {
			return r.Threads[i].Name
		}
	}
	return ""
}

// TestPinned: a virtual thread that parks in a class initialiser holds its carrier. Other virtual threads that park
// do not.
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
				for range 6000 { // this bounds a hang
					if r = p.read(); len(r.JVM.Virtual.Pinned) > 0 && r.JVM.Virtual.Mounted.Or(0) == 1 {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				v := r.JVM.Virtual
				if len(v.Pinned) != 1 || v.Pinned[0].Name != "virtual-0" ||
					!strings.HasPrefix(threadName(r, v.Pinned[0].Carrier), "ForkJoinPool") {
					t.Errorf("%+v", v)
				}
			})
		}
	})
}

// TestNoCounters: a JVM that keeps no counters is read as far as its structures go.
func TestNoCounters(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		p := attach(t, jdk, "-Xmx128m", "-XX:-UsePerfData", "-XX:+UseG1GC")
		r := p.read()
		j := &r.JVM
		if j.Safepoints.Count.IsKnown() || j.Classes.Loaded.IsKnown() || j.GC.OldAfter.IsKnown() {
			t.Errorf("%+v", j)
		}
		if !j.GC.Heap.Used.IsKnown() || !j.GC.Collections.IsKnown() || !j.Threads.Live.IsKnown() ||
			!j.Code.Total.Used.IsKnown() ||
			!j.References.Finalizers.IsKnown() || j.Threads.Live.Or(0) < 3 {
			t.Errorf("%+v", j)
		}
	})
}

// TestGone: goprof notices that a process has ended.
func TestGone(t *testing.T) {
	jdk := jvmtest.JDKs(t)[0]
	p := attach(t, jdk)
	p.Kill()
	if _, err := p.v.Read(); !errors.Is(err, process.ErrGone) {
		t.Errorf("%v", err)
	}
}

// TestStopped: a stopped JVM answers no command. goprof reads it all the same.
func TestStopped(t *testing.T) {
	p := attach(t, jvmtest.JDKs(t)[0], "-Xmx128m")
	if err := unix.Kill(p.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var r *Reading
	for range 6000 { // its threads stop one after the other
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
