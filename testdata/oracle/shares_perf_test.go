//go:build linux

package oracle

import (
	"testing"
	"time"

	"goprof/session"
	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
)

// testEngine is what sample samples with. Only tests without t.Parallel set it, through withPerf: these end before
// parallel ones go on.
var testEngine session.EngineName

// withPerf makes the rest of a test sample by perf_event, or skips it where that is not permitted.
func withPerf(t testing.TB) {
	t.Helper()
	host.NeedPerf(t)
	testEngine = session.PerfEngine
	t.Cleanup(func() { testEngine = "" })
}

// TestPerfSharesOfJava is TestShares by perf_event.
func TestPerfSharesOfJava(t *testing.T) {
	sampletest.Proof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		withPerf(t)
		sharesRun(t, jdk, 1, 3000)
	})
}

// TestPerfJavacIsWhole is TestJavacIsWhole by perf_event. Interpreted, javac's stacks are longer than 64 KB
// now and then.
func TestPerfJavacIsWhole(t *testing.T) {
	if !longForm {
		t.Skip("make prove runs it: its figures depend on what else the machine does")
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		withPerf(t)
		jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", "--", "0", "200")
		checkWhole(t, attach(t, jvm.PID), envNumber("GOPROF_JAVAC_SAMPLES", 5000), 1)
	})
}

// TestPerfIntrinsics is TestIntrinsics by perf_event, without what needs the thread's frame anchor.
func TestPerfIntrinsics(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, group := range jvmtest.Drawn(t, 1, []string{"strings", "crypto"}) {
			t.Run(group, func(t *testing.T) {
				withPerf(t)
				jvm := jvmtest.Start(t, jdk, "truth.Intrinsics", "--", group)
				s := attach(t, jvm.PID)
				again(t, func(t testing.TB) { checkIntrinsics(t, s, intrinsicSamples(), false) })
			})
		}
	})
}

// TestPerfVirtualServer is TestVirtualServer by perf_event: what is in the heap is copied by the kernel, if it takes
// programs from us.
func TestPerfVirtualServer(t *testing.T) {
	withPerf(t)
	serverRuns(t)
}

// TestPerfVirtual: stacks of virtual threads, most of whose frames are in the heap. They are read while the
// thread runs on, so that more of them end there than by the other engine; none may be wrong.
func TestPerfVirtual(t *testing.T) {
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		withPerf(t)
		jvm := jvmtest.Start(t, jdk, "truth.VirtualLoad", "--", "16", "25")
		opt := session.RecordOptions{Interval: time.Millisecond, Threads: true, Engine: session.PerfEngine}
		s := attach(t, jvm.PID)
		again(t, func(t testing.TB) {
			p, sum, err := s.Record(untilEnough(t, &opt, time.Second, 300), opt)
			if err != nil || sum.Meta.Engine != "perf" || sum.Pauses.Count != 0 {
				t.Fatalf("%v, %+v", err, sum)
			}
			judgeLoad(t, p, 25)
		})
	})
}
