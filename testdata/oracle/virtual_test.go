//go:build linux

package oracle

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// virtualJDKs runs a test on each JDK that has virtual threads.
func virtualJDKs(t *testing.T, test func(t *testing.T, jdk jvmtest.JDK)) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 21 {
			t.Skip("no virtual threads before JDK 21")
		}
		test(t, jdk)
	})
}

// TestVirtualThreads: the entry of a carrier names the virtual thread that it runs, and holds that
// one's frames, those that are still in the heap too, apart from the carrier's own.
func TestVirtualThreads(t *testing.T) {
	t.Parallel()
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range []string{"-Xmixed", "-Xint", "-XX:-UseCompressedOops", "-XX:+UseZGC"} {
			t.Run(mode, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.Virtual", mode, "-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames")
				stacks, err := jvmtest.ParseStacks(jvm.Command("stacks"))
				if err != nil || len(stacks) != 2 {
					t.Fatalf("%d stacks, %v", len(stacks), err)
				}
				s := attach(t, jvm.PID)
				usual := s.Soon
				for _, opt := range []session.DumpOptions{{}, {NonBlocking: true}} {
					if opt.NonBlocking {
						s.Soon = 0 // what stands still may be read slowly
					}
					threads := dumped(t, s, opt)
					s.Soon = usual
					for i, who := range jvm.Command("ids") {
						checkMounted(t, threads, stacks[i], strings.TrimSpace(who))
					}
				}
			})
		}
	})
}

// checkMounted holds one virtual thread, "id name", against what Java says of it.
func checkMounted(t *testing.T, threads []dumpedThread, want jvmtest.ExpectedStack, who string) {
	t.Helper()
	i := slices.IndexFunc(threads, func(th dumpedThread) bool {
		return th.Virtual != nil && strings.TrimSpace(fmt.Sprintf("%d %s", th.Virtual.ID, th.Virtual.Name)) == who
	})
	if i < 0 {
		t.Errorf("no carrier runs %q", who)
		return
	}
	th := &threads[i]
	if th.Truncated != "" || th.CarrierTruncated != "" {
		t.Errorf("truncated %q, the carrier's %q\n%s", th.Truncated, th.CarrierTruncated, dumpedText(th))
	}
	// To the JVM the frame that holds the entry is the virtual thread's, too.
	if n := len(want.Frames) - 1; n > 0 && want.Frames[n].Method == "jdk.internal.vm.Continuation.enterSpecial" {
		want.Frames = want.Frames[:n]
	}
	if err := want.Compare(javaOf(th)); err != nil {
		t.Errorf("%v\n%s", err, dumpedText(th))
	}
	carrier := javaOf(&dumpedThread{Frames: th.Carrier})
	if len(carrier) == 0 || carrier[0].Method != "jdk.internal.vm.Continuation.enterSpecial" ||
		carrier[len(carrier)-1].Method != "java.util.concurrent.ForkJoinWorkerThread.run" {
		t.Errorf("the carrier's frames: %v", carrier)
	}
}

// carriersOf are the threads that stand in a virtual thread of truth.Virtual.
func carriersOf(threads []dumpedThread) (carriers []dumpedThread) {
	for _, th := range threads {
		if hasMethod(javaOf(&th), "truth.Virtual.stand") {
			carriers = append(carriers, th)
		}
	}
	return carriers
}

// withCarriers is the threads as stacks of the kernel's threads: a carrier's own frames below those of
// the virtual thread that it runs.
func withCarriers(threads []dumpedThread) []dumpedThread {
	for i := range threads {
		th := &threads[i]
		th.Frames = append(th.Frames, th.Carrier...)
	}
	return threads
}

// TestVirtualLoad records virtual threads that compute after they have given up their carrier, so that their
// callers are in the heap: at least 99 of 100 stacks are whole on each JDK, down to their own root. On a machine
// where goprof has to wait for a CPU right after a pause some have moved on by then, so one mode alone may have fewer.
func TestVirtualLoad(t *testing.T) {
	duration := time.Second
	if s := os.Getenv("GOPROF_VIRTUAL_LOAD"); s != "" {
		duration, _ = time.ParseDuration(s)
	}
	// Where CPUs are short the frames in the heap are often read too late, and are not believed.
	most := int64(10)
	if os.Getenv("GOPROF_PROVE") != "" {
		most = 100
	}
	if os.Getenv("GOPROF_EMULATED") != "" {
		t.Skip("what is read after a pause comes too late on an emulated machine: TestVirtualThreads and TestShadowVirtual " +
			"are for it")
	}
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		var whole, cut int64
		defer func() {
			if t.Logf("%d whole, %d cut", whole, cut); cut*most > whole+cut {
				t.Errorf("%d of %d stacks of virtual threads are cut", cut, whole+cut)
			}
		}()
		for _, mode := range []struct {
			name  string
			flags []string
			args  []string
		}{
			{name: "mixed"},
			{name: "interpreted", flags: []string{"-Xint"}, args: []string{"16", "25", "mounted", "30000"}},
			{name: "deep", args: []string{"16", "200"}},
			{name: "pinned", flags: []string{"-Djdk.reflect.useNativeAccessorOnly=true"}, args: []string{"16", "25", "pinned"}},
			{name: "zgc", flags: []string{"-XX:+UseZGC"}},
		} {
			t.Run(mode.name, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.VirtualLoad", append(append(mode.flags, "--"), mode.args...)...)
				s := attach(t, jvm.PID)
				depth := 25
				if len(mode.args) > 1 {
					depth, _ = strconv.Atoi(mode.args[1])
				}
				again(t, func(t testing.TB) {
					opt := session.RecordOptions{Interval: 2 * time.Millisecond, Threads: true}
					p, _, err := s.Record(untilEnough(t, &opt, duration, 300), opt)
					if err != nil {
						t.Fatal(err)
					}
					w, c := judgeLoad(t, p, depth)
					if t.Failed() {
						return
					}
					whole, cut = whole+w, cut+c
					if mode.name == "pinned" {
						checkPinned(t, p)
					}
				})
			})
		}
	})
}

// TestVirtualServer records virtual threads that do what those of a server do: they come back from the heap, make a
// system call or two, and give up their carrier again. So what is read after a pause is often of another moment; at
// least 98 of 100 stacks are whole nevertheless, and each is that of the thread that it is said to be.
func TestVirtualServer(t *testing.T) {
	serverRuns(t)
}

// serverRuns is TestVirtualServer by testEngine.
func serverRuns(t *testing.T) {
	duration := time.Second
	if s := os.Getenv("GOPROF_VIRTUAL_LOAD"); s != "" {
		duration, _ = time.ParseDuration(s)
	}
	if os.Getenv("GOPROF_EMULATED") != "" {
		duration *= 4
	}
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		for i, mode := range []struct {
			name  string
			flags []string
			args  []string
		}{
			{name: "20", args: []string{"20", "60"}},
			{name: "200", args: []string{"200", "60"}},
			{name: "interpreted", flags: []string{"-Xint"}, args: []string{"20", "30"}},
			{name: "zgc", flags: []string{"-XX:+UseZGC"}, args: []string{"20", "60"}},
		} {
			if !longForm && testEngine == session.PerfEngine && i%2 == 1 {
				continue
			}
			t.Run(mode.name, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.VirtualServer", append(append(mode.flags, "--"), mode.args...)...)
				s := attach(t, jvm.PID)
				depth, _ := strconv.Atoi(mode.args[1])
				again(t, func(t testing.TB) {
					opt := session.RecordOptions{Interval: 2 * time.Millisecond, Threads: true, Engine: testEngine}
					p, _, err := s.Record(untilEnough(t, &opt, duration, 200), opt)
					if err != nil {
						t.Fatal(err)
					}
					judgeServer(t, p, depth)
				})
			})
		}
	})
}

// judgeServer fails the test if a stack is not that of its thread, or too many are cut.
func judgeServer(t testing.TB, p *profile.Profile, depth int) {
	t.Helper()
	var whole, cut int64
	mounts := 0
	reasons := map[string]int64{}
	p.Each(func(frames []profile.Frame, n int64) {
		var number int
		label := frames[0].Func.Name
		named, _ := fmt.Sscanf(label, "[serve-%d virtual #", &number)
		switch {
		case !strings.Contains(label, "virtual #"):
			if slices.ContainsFunc(frames, func(f profile.Frame) bool { return f.Func.Name == "truth.VirtualServer.root" }) {
				fact(t).Errorf("%d stacks of a virtual thread under %s: %s", n, label, pathOf(frames))
			}
			mounts += b2i(slices.ContainsFunc(frames, func(f profile.Frame) bool {
				return f.Func.Name == "cont_thaw" || f.Func.Name == "Cont thaw"
			}))
			return
		case strings.HasPrefix(frames[1].Func.Name, "[truncated"):
			cut += n
			reasons[frames[1].Func.Name+" above "+frames[2].Func.Name+" in "+frames[len(frames)-1].Func.Name] += n
			return
		}
		whole += n
		down, leaf := 0, 0
		for _, f := range frames {
			down += b2i(f.Func.Name == "truth.VirtualServer.down")
			leaf += b2i(f.Func.Name == "truth.VirtualServer.leaf")
		}
		if err := serverStack(frames[1:]); err != nil || leaf > 0 && down < depth || named == 1 && leaf > 0 &&
			down != depth+number%7 {
			fact(t).Errorf("%d stacks of %s, %d times down: %v: %s", n, label, down, err, pathOf(frames))
		}
	})
	t.Logf("%d whole, %d cut, %d stacks of carriers that mount one", whole, cut, mounts)
	// A machine that is short of CPUs gives few samples, and the kernel is told late what to copy.
	if whole < 30 || cut-atBeginning > int64(atMost(1.0/50, int(whole+cut))) {
		t.Errorf("%d of %d stacks of virtual threads are cut: %v", cut, whole+cut, reasons)
	}
}

// atBeginning is how many stacks of a short recording may be cut before it is known which threads run virtual ones.
// They come apart from the two in a hundred that may be cut later.
const atBeginning = 15

// serverStack checks a stack from its root.
func serverStack(frames []profile.Frame) error {
	var java []string
	for _, f := range frames {
		if f.Kind.Java() {
			java = append(java, f.Func.Name)
		}
	}
	if len(java) == 0 || java[0] != "jdk.internal.vm.Continuation.enter" || !slices.Contains(java,
		"java.lang.VirtualThread.run") {
		return errors.New("it does not begin at its root")
	}
	return nil
}

// judgeLoad fails the test if a stack that holds leaf is not what the program is, or very many are cut.
func judgeLoad(t testing.TB, p *profile.Profile, depth int) (whole, cut int64) {
	t.Helper()
	var unknown, named int64
	reasons := map[string]int64{}
	p.Each(func(frames []profile.Frame, n int64) {
		label := frames[0].Func.Name
		if !strings.Contains(label, "virtual #") {
			if slices.ContainsFunc(frames, func(f profile.Frame) bool {
				return strings.HasPrefix(f.Func.Name,
					"truth.VirtualLoad.leaf")
			}) {
				fact(t).Errorf("%d stacks of a virtual thread under %s", n, label)
			}
			return
		}
		switch {
		case strings.Contains(label, "#?"):
			unknown += n
		case strings.HasPrefix(label, "[load-"):
			named += n
		}
		if why := frames[1].Func.Name; strings.HasPrefix(why, "[truncated") {
			cut += n
			reasons[why] += n
			return
		}
		whole += n
		if err := loadStack(frames[1:], depth); err != nil {
			fact(t).Errorf("%d stacks: %v: %s", n, err, pathOf(frames))
		}
	})
	t.Logf("%d whole, %d cut %v, %d of an unknown thread, %d of a named one", whole, cut, reasons, unknown, named)
	if testEngine == session.PerfEngine { // how many are cut depends on how soon it has a CPU
		if whole < 20 || named == 0 {
			t.Errorf("only %d stacks of virtual threads, %d of named ones", whole, named)
		}
		return whole, cut
	}
	if whole < 100 {
		t.Errorf("only %d stacks of virtual threads", whole)
	}
	if cut*5 > whole+cut || unknown*20 > whole+cut {
		t.Errorf("%d of %d stacks of virtual threads are cut, %d are of an unknown thread", cut, whole+cut, unknown)
	}
	if named*4 < whole || named*4 > 3*whole {
		t.Errorf("%d of %d stacks are of the threads with a name, of two threads one", named, whole)
	}
	return whole, cut
}

// checkPinned: all whole stacks go through the native method because of which their threads stay mounted.
func checkPinned(t testing.TB, p *profile.Profile) {
	t.Helper()
	p.Each(func(frames []profile.Frame, n int64) {
		leaf, native := false, false
		for _, f := range frames {
			leaf = leaf || f.Func.Name == "truth.VirtualLoad.leaf"
			native = native || f.Kind == profile.NativeMethod && strings.HasSuffix(f.Func.Name, ".invoke0")
		}
		if leaf && !native && !strings.HasPrefix(frames[1].Func.Name, "[truncated") {
			fact(t).Errorf("%d stacks without a native method: %s", n, pathOf(frames))
		}
	})
}

// loadStack checks a stack from its root: VirtualThread.run is near, and those that have come to
// VirtualLoad.leaf have passed down as often as the program goes down.
func loadStack(frames []profile.Frame, depth int) error {
	var java []string
	for _, f := range frames {
		if f.Kind.Java() {
			java = append(java, f.Func.Name)
		}
	}
	if len(java) == 0 || java[0] != "jdk.internal.vm.Continuation.enter" ||
		!slices.Contains(java, "java.lang.VirtualThread.run") {
		return errors.New("it does not begin at its root")
	}
	root := slices.Index(java, "truth.VirtualLoad.root")
	leaf := slices.Index(java, "truth.VirtualLoad.leaf")
	if root >= 0 && leaf >= 0 && leaf-root-1 != depth {
		return fmt.Errorf("%d times down, not %d", leaf-root-1, depth)
	}
	if leaf >= 0 && root < 0 {
		return errors.New("leaf without root")
	}
	return nil
}

func pathOf(frames []profile.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, ";%s", f.Func.Name)
	}
	return b.String()
}

// TestShadowVirtual is TestShadow of a virtual thread that gives up its carrier at random depths, so
// that most of its frames are in the heap: none of them may be wrong. While the thread comes back to
// them or leaves them nobody can tell where they are, and it does hardly anything else.
func TestShadowVirtual(t *testing.T) {
	stops := 250
	if s := os.Getenv("GOPROF_SHADOW_STOPS"); s != "" {
		stops, _ = strconv.Atoi(s)
	}
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		type mode struct {
			name  string
			flags []string
		}
		for _, mode := range jvmtest.Drawn(t, 3, []mode{
			{"mixed", nil},
			{"interpreted", []string{"-Xint"}},
			{"c1", []string{"-XX:TieredStopAtLevel=1"}},
			{"small-heap", []string{"-Xmx24m", "-XX:+UseSerialGC"}},
			{"zgc", []string{"-XX:+UseZGC", "-Xmx64m"}},
			{"shenandoah", []string{"-XX:+UseShenandoahGC", "-Xmx64m"}},
			{"g1", []string{"-XX:+UseG1GC", "-Xmx24m", "-XX:+UseStringDeduplication"}},
		}) {
			t.Run(mode.name, func(t *testing.T) {
				flags := append([]string{"-Djdk.virtualThreadScheduler.parallelism=1",
					"-Djdk.virtualThreadScheduler.maxPoolSize=1"}, mode.flags...)
				count := countShadow(t, jdk, flags, []string{"1", "1", "virtual"}, stops)
				t.Logf("%d with frames from the heap, of %d stops that copied them", count.fromHeap, count.together)
				if n := count.verdicts[jvmtest.Mismatch]; n > 0 {
					t.Errorf("%d mismatches", n)
				}
				if count.together*4 < stops {
					t.Errorf("only %d of %d stops copied the frames in the heap with the stack", count.together, stops)
				}
				if count.stops < stops*9/10 || count.fromHeap*10 < stops {
					t.Errorf("only %d of %d stops could be compared, %d with frames from the heap", count.stops, stops, count.fromHeap)
				}
			})
		}
	})
}
