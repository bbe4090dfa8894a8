//go:build linux

package oracle

import (
	"math"
	"runtime"
	"strconv"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/session"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
)

// TestRequestPools samples two pools whose threads work some microseconds for each request, one twice as much as the
// other. There are as many samples as intervals of CPU time, and the samples carry that time. More threads, and longer:
//
//	GOPROF_PROVE=1 GOPROF_POOL_THREADS=2500 GOPROF_POOL_SAMPLES=5000 go test ./testdata/oracle -run TestRequestPools -v -timeout 1h
func TestRequestPools(t *testing.T) {
	sampletest.Proof(t)
	threads, samples := envNumber("GOPROF_POOL_THREADS", 150), envNumber("GOPROF_POOL_SAMPLES", 120)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, engine := range []session.EngineName{session.PtraceEngine, session.PerfEngine} {
			t.Run(string(engine), func(t *testing.T) {
				again(t, func(t testing.TB) { poolsRun(t, jdk, engine, threads, samples) })
			})
		}
	})
}

func poolsRun(t testing.TB, jdk jvmtest.JDK, engine session.EngineName, threads, samples int) {
	const interval = 5 * time.Millisecond
	jvm := jvmtest.Start(fact(t), jdk, "truth.RequestPools", "-Xss256k", "--", strconv.Itoa(threads))
	defer jvm.Quit() // not beside the next try
	s := attach(t, jvm.PID)
	much, little := threadsCalled(t, s, "much"), threadsCalled(t, s, "little")
	used := func(tids map[int]bool) (ran int64) {
		for tid := range tids {
			ran += ctest.Ran(t, jvm.PID, tid)
		}
		return ran
	}
	muchBefore, littleBefore := used(much), used(little)
	var ofMuch, ofLittle, billed, last int64
	got := sampleBy(t, s, engine, interval, samples, func(snap *look.Look, _ *profile.Stack) {
		billed, last = billed+snap.CPU, snap.When
		switch {
		case much[snap.TID]:
			ofMuch += snap.Samples()
		case little[snap.TID]:
			ofLittle += snap.Samples()
		}
	})
	// What the program may have used since the last sample: goprof ends when it has a CPU.
	unbilled := float64(runtime.NumCPU()) * float64(monotonic()-last)
	muchUsed, littleUsed := used(much)-muchBefore, used(little)-littleBefore
	// Due is what was used while samples were taken: to ask thousands of threads what they have used takes so long that
	// they use as much again meanwhile.
	n, due := float64(got.stats.Taken), float64(got.stats.Times.Process)/float64(interval)
	truth, seen := float64(muchUsed)/float64(muchUsed+littleUsed), float64(ofMuch)/float64(ofMuch+ofLittle)
	t.Logf("%d threads: %.0f samples where %.0f are due; the busier pool has %.3f of the time and %.3f of the "+
		"samples; %.3f of all time is in samples; %d lost; goprof %.1f %% of a CPU",
		len(much)+len(little), n, due, truth, seen, float64(billed)/float64(got.stats.Times.Process), got.stats.LostSum(),
		100*got.stats.CPU.Seconds()/got.stats.Wall.Seconds())
	needTicks(t, &got.stats)
	least := due // of the ticks that were held: those that were skipped are counted, and their samples are missing
	if skipped := float64(got.stats.Skipped); skipped > 0 {
		least *= float64(got.stats.Ticks) / (float64(got.stats.Ticks) + skipped)
	}
	if luck := due/10 + 4*math.Sqrt(due); n > due+luck || n < least-luck {
		t.Errorf("%.0f samples where %.0f are due", n, due)
	}
	// CPU time that has no samples, because a hypervisor had the CPU for which a thread was charged, was of either pool.
	unseen := max(0, (due-n)/due-0.1)
	if math.Abs(seen-truth) > 4*math.Sqrt(truth*(1-truth)/float64(ofMuch+ofLittle))+unseen {
		t.Errorf("the busier pool has %.3f of the time and %.3f of the samples", truth, seen)
	}
	if got.stats.Visits && float64(billed)+unbilled < 0.95*float64(got.stats.Times.Process) {
		t.Errorf("%v of %v are in samples, at most %v are of later", time.Duration(billed), got.stats.Times.Process,
			time.Duration(unbilled))
	}
}
