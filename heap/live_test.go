//go:build linux

package heap

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

func openLive(t *testing.T, jvm *jvmtest.JVM) (*Reader, error) {
	t.Helper()
	return NewReader(openVM(t, jvm))
}

func openVM(t *testing.T, jvm *jvmtest.JVM) *vmstructs.VM {
	t.Helper()
	p, err := process.Open(jvm.PID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	vm, err := vmstructs.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// counted returns the JVM's own counts, by class.
func counted(t *testing.T, jvm *jvmtest.JVM) map[string]profile.HeapAmount {
	t.Helper()
	return histogram(string(tableOf(t, jvm)))
}

// tableOf runs GC.class_histogram -all, which does not start a collection.
func tableOf(t *testing.T, jvm *jvmtest.JVM) []byte {
	t.Helper()
	out, err := exec.Command(jvm.JDK.Tool("jcmd"), strconv.Itoa(jvm.PID), "GC.class_histogram", "-all").CombinedOutput()
	if err != nil {
		t.Fatalf("jcmd: %v: %s", err, out)
	}
	return out
}

// collectors are the garbage collectors for heaps at rest. Those after the first three run only if GOPROF_JDKS names
// JDKs.
var collectors = []struct{ name, flags string }{
	{"Serial", "-XX:+UseSerialGC"},
	{"Parallel", "-XX:+UseParallelGC"},
	{"G1", "-XX:+UseG1GC"},
	{"G1 compact", "-XX:+UseG1GC -XX:+UseCompactObjectHeaders"},
	{"Serial wide", "-XX:+UseSerialGC -XX:-UseCompressedClassPointers -XX:ObjectAlignmentInBytes=16"},
	{"Shenandoah", "-XX:+UseShenandoahGC"},
	{"ZGC", "-XX:+UseZGC -XX:+ZGenerational"},
	{"CMS", "-XX:+UseConcMarkSweepGC -XX:+ExplicitGCInvokesConcurrent"},
	{"CMS wide", "-XX:+UseConcMarkSweepGC -XX:-UseCompressedOops -XX:+ExplicitGCInvokesConcurrent"},
}

const usual = 3

func truthFlags(flags, program string) []string {
	return append(strings.Fields("-Xms128m -Xmx128m -XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockExperimentalVMOptions "+
		"-XX:+UnlockDiagnosticVMOptions "+flags+" --"), strings.Fields(program)...)
}

// TestLiveTruth: in a heap at rest, all objects are counted as the JVM itself counts them. Afterwards, while the
// program makes garbage, samples of a twentieth are right about the objects that the program keeps.
func TestLiveTruth(t *testing.T) {
	some := collectors
	if os.Getenv("GOPROF_JDKS") == "" {
		some = some[:usual]
	}
	for _, c := range some {
		t.Run(c.name, func(t *testing.T) {
			jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
				jvm := jvmtest.Start(t, jdk, "truth.HeapTruth", truthFlags(c.flags, "20")...)
				r, err := openLive(t, jvm)
				if errors.Is(err, vmstructs.ErrMissing) && jdk.Version == 11 {
					t.Skip("this JVM does not say where its objects are")
				}
				if err != nil {
					t.Fatal(err)
				}
				if want, _, _ := strings.Cut(c.name, " "); r.heap.CollectorName() != want {
					t.Skipf("%v has no %s", jdk, want)
				}
				counted(t, jvm) // the first jcmd starts the thread that answers
				got, err := r.Read(Options{All: true})
				for tries := 0; err == nil && got.Sampled() && tries < 5; tries++ { // ZGC collects at any time
					got, err = r.Read(Options{All: true})
				}
				if errors.Is(err, vmstructs.ErrMissing) && jdk.Version == 11 {
					t.Skip("this JVM does not say where its objects are")
				}
				if err != nil {
					t.Fatal(err)
				}
				compare(t, jdk.Version, got, counted(t, jvm), 20_000)
				if g1 := got.Collector == "G1" && jdk.Version > 8; g1 && (got.Part("young") == nil || got.Part("old") == nil) {
					t.Errorf("young and old are not told apart: %+v", got.Parts)
				}
				if got.Collector == "ZGC" && jdk.Version > 20 {
					zParts(t, got)
				}
				if jdk.Version > 8 { // in JDK 8, arrays of chars are also garbage
					jvm.Command("garbage 20")
					opt := Options{Bytes: 1 << 20, Time: 5 * time.Second}
					if got.Collector == "CMS" { // the old generation of CMS cannot be sampled
						opt.Bytes = 0
					}
					sampled(t, r, opt)
				}
			})
		})
	}
}

// TestLive: after a collection that leaves no dead objects in the old generation, goprof counts exactly the live
// objects there.
func TestLive(t *testing.T) {
	some := []string{"-XX:+UseG1GC -XX:+ExplicitGCInvokesConcurrent", "-XX:+UseSerialGC", "-XX:+UseParallelGC",
		"-XX:+UseG1GC", "-XX:+UseZGC"}
	if os.Getenv("GOPROF_JDKS") == "" {
		some = some[:2]
	}
	for _, flags := range some {
		t.Run(flags, func(t *testing.T) {
			jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
				began := time.Now()
				jvm := jvmtest.Start(t, jdk, "truth.HeapLeaks", truthFlags(flags+" -XX:MaxTenuringThreshold=0", "")...)
				up := time.Now()
				r, err := openLive(t, jvm)
				if jdk.Version < 17 && errors.Is(err, vmstructs.ErrMissing) {
					t.Skip("ZGC of 11 does not export where its objects are")
				}
				if err != nil {
					t.Fatal(err)
				}
				// The first collection after "rest" treats all old objects as alive. So it keeps young objects that only dead old
				// objects refer to. The second collection finds both dead.
				for _, command := range []string{"keep 20", "gc", "gc", "rest", "gc"} {
					jvm.Command(command)
				}
				const alive = 4000 + 2000 + 6000 + 2000 // 12,000 and 3,000 more were alive at an earlier collection
				var h *profile.Heap
				var orders float64
				for range 3 { // concurrent G1 of 25 kept 217 dead objects through the second collection, once in 200 runs
					jvm.Command("gc")
					if h, err = r.Read(Options{All: true}); err != nil {
						t.Fatal(err)
					}
					orders = byName(h.Only(profile.HeapLive))[order].Objects
					t.Logf("%v: %.0f orders, swept %v", jdk, orders, h.Swept)
					if orders == alive || h.Swept == nil {
						break
					}
				}
				swept := r.heap.CollectorName() != "ZGC" && (!strings.Contains(flags, "G1") || jdk.Version >= 20)
				switch {
				case swept != (h.Swept != nil):
					t.Errorf("%v: swept %v", jdk, h.Swept)
				case swept && (orders != alive || *h.Swept > time.Since(began)):
					t.Errorf("%v: %.0f orders are alive, as of %v ago", jdk, orders, *h.Swept)
				case strings.Contains(strings.Join(h.Notes, ""), "int[]") != (swept && jdk.Version < 19):
					t.Errorf("%v: which classes stand for dead objects: %q", jdk, h.Notes)
				}
				core := began.Add(time.Hour) // the age is that at the time of the core, whenever the core is read
				h, err = r.Read(Options{All: true, Life: vmstructs.Lifetime{Now: core}})
				if err != nil || !h.At.Equal(core) || swept && (*h.Swept < 50*time.Minute || *h.Swept > time.Hour) {
					t.Errorf("%v: at %v, swept %v, %v", jdk, h.At, h.Swept, err)
				}
				// The clock was set an hour forward, or an hour back, since the JVM began.
				for _, by := range []time.Duration{time.Hour, -time.Hour} {
					life := vmstructs.Lifetime{Since: began.Add(by), Until: up.Add(by), Now: up.Add(by + time.Hour/2)}
					h, err = r.Read(Options{All: true, Life: life})
					if err != nil || swept && (*h.Swept < time.Hour/4 || *h.Swept > time.Hour/2+up.Sub(began)) {
						t.Errorf("%v: the clock was set by %v: swept %v, %v", jdk, by, h.Swept, err)
					}
				}
			})
		})
	}
}

// zParts: with generations of ZGC, young and old are counted separately, and survivors of a collection are old.
func zParts(t *testing.T, h *profile.Heap) {
	t.Helper()
	for _, c := range h.Classes {
		if c.Name == "truth.HeapTruth$Old" && c.Parts["old"].Objects < 20_000 ||
			c.Name == "truth.HeapTruth$Young" && c.Parts["young"].Objects < 20_000 {
			t.Errorf("%s lies in %+v", c.Name, c.Parts)
		}
	}
}

// sampled reads samples of a running program. It looks at arrays that the program keeps in many places. Most samples of
// them are right within their errors, and the mean of the samples is near the truth.
func sampled(t *testing.T, r *Reader, opt Options) {
	t.Helper()
	const class, rounds = "char[]", 12
	whole, err := r.Read(Options{All: true})
	if err != nil {
		t.Fatal(err)
	}
	want, right, sum := byName(whole)[class].Objects, 0, 0.0
	for seed := range uint64(rounds) {
		opt.Seed = seed
		h, err := r.Read(opt)
		if err != nil {
			t.Fatal(err)
		}
		got := byName(h)[class]
		sum += got.Objects / rounds
		if off := max(got.Objects-want, want-got.Objects); off <= got.ObjectsError+want/100 {
			right++
		}
		for _, c := range h.Classes {
			if strings.Contains(c.Name, "\x00") || c.Name == others {
				t.Errorf("there is no class %q", c.Name)
			}
		}
	}
	t.Logf("%d of %d samples are right within their errors; %.0f on average, %.0f is true", right, rounds, sum, want)
	if right < rounds*2/3 || sum < want*3/4 || sum > want*5/4 {
		t.Errorf("%d of %d samples are right within their errors; %.0f on average, %.0f is true", right, rounds, sum, want)
	}
}

// TestLiveGrowth: a leak of 1 MB a second, with garbage beside it, is named first. Garbage alone is not growth.
func TestLiveGrowth(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.HeapTruth",
			truthFlags("-XX:+UseSerialGC -Xmn4m -XX:MaxTenuringThreshold=1", "5")...)
		r, err := openLive(t, jvm)
		if err != nil {
			t.Fatal(err)
		}
		readings := func() (all []*profile.Heap) {
			for range 8 {
				time.Sleep(400 * time.Millisecond)
				h, err := r.Read(Options{Time: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, h)
			}
			return all
		}
		jvm.Command("garbage 20")
		if g := growthOf(readings()); len(g.Classes) != 0 {
			t.Errorf("garbage is told as growth: %+v", g.Classes[0])
		}
		jvm.Command("leak 1000")
		var g *profile.HeapGrowth
		for range 4 { // on a busy machine, a program that gets no CPU for a while leaks in steps
			g = growthOf(readings())
			if len(g.Classes) == 2 {
				break
			}
		}
		if len(g.Classes) != 2 || g.Classes[0].Name != "byte[]" || g.Classes[1].Name != "truth.HeapTruth$Leaked" {
			t.Fatalf("the leak is not named: %+v", g)
		}
		if g.Collected != (g.Full > 0) || g.Used.Rate <= 0 { // no collection: when it is full is not known
			t.Errorf("%+v", g)
		}
	})
}

// TestLiveCollected: the old generation is counted while the whole heap is collected all the time, and while the
// process is stopped in the middle of a collection. The result estimates the whole from what could be read.
func TestLiveCollected(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, flags := range []string{"-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseG1GC"} {
			t.Run(flags, func(t *testing.T) {
				const class, kept = "truth.HeapTruth$Old", 100_000
				jvm := jvmtest.Start(t, jdk, "truth.HeapTruth", truthFlags(flags, "100")...)
				r, err := openLive(t, jvm)
				if err != nil {
					t.Fatal(err)
				}
				jvm.Command("collect 5")
				for range 3 {
					h, err := r.Read(Options{Time: 10 * time.Second, Seed: 1})
					if err != nil {
						t.Fatal(err)
					}
					got := byName(h)[class]
					t.Logf("%.0f +- %.0f of %s, %+v %q", got.Objects, got.ObjectsError, class, h.Parts, h.Notes)
					if off := max(got.Objects-kept, kept-got.Objects); off > got.ObjectsError+kept/10 {
						t.Errorf("%.0f +- %.0f of %s, not %d: %+v %q", got.Objects, got.ObjectsError, class, kept, h.Parts, h.Notes)
					}
				}
				stopCollecting(t, jvm, r)
				h, err := r.Read(Options{Time: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("stopped: %+v %q %+v", h.Parts, h.Notes, byName(h)[class])
				if young := h.Part("young"); young != nil && young.Used > 0 && young.Seen == 0 || len(h.Notes) == 0 {
					t.Errorf("stopped within a collection: %+v %q", h.Parts, h.Notes)
				}
			})
		}
	})
}

// stopCollecting stops a JVM in the middle of a collection.
func stopCollecting(t *testing.T, jvm *jvmtest.JVM, r *Reader) {
	t.Helper()
	t.Cleanup(func() { syscall.Kill(jvm.PID, syscall.SIGCONT) })
	for range 1000 {
		if err := syscall.Kill(jvm.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		awaitStopped(t, jvm.PID)
		if r.heap.Epoch().Active {
			return
		}
		if err := syscall.Kill(jvm.PID, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Millisecond)
	}
	t.Fatal("no collection was under way at any stop")
}

// awaitStopped waits until no thread of a process runs. A thread that waits for a CPU stops only when it gets one.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	host.WaitFor(t, "all threads are stopped", func() bool {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return !slices.ContainsFunc(tasks, func(task string) bool {
			stat, err := os.ReadFile(task)
			return err == nil && !strings.Contains(string(stat), ") T ")
		})
	})
}
