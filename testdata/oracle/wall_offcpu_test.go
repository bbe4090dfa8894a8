//go:build linux

package oracle

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/offcpu"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// spanSink sums up the time of each thread, and of what it waited for.
type spanSink struct {
	allocatedSink
	threads map[int]time.Duration
	leaves  map[string]time.Duration
	inside  map[[2]string]time.Duration // while a method of truth.Waiting waited for its lock, by leaf
}

func (s *spanSink) Sample(sample *profile.Sample) {
	s.threads[sample.Thread.TID] += sample.Span
	if len(sample.Stack.Frames) > 0 {
		s.leaves[sample.Stack.Frames[0].Func.Name] += sample.Span
	}
	for _, f := range sample.Stack.Frames {
		if f.Func.Name == "truth.Waiting.sleep" {
			break // it has its lock
		}
		if lock, ok := strings.CutPrefix(f.Func.Name, "truth.Waiting.in"); ok {
			s.inside[[2]string{lock, sample.Stack.Frames[0].Func.Name}] += sample.Span
		}
	}
}

// TestOffCPUBySwitches: CPU time and time off the CPU of each thread are together the time that passed, and waiting for
// locks is what the program says, lock by lock.
func TestOffCPUBySwitches(t *testing.T) {
	jvmtest.ForNewestJDK(t, testOffCPU)
}

func testOffCPU(t *testing.T, jdk jvmtest.JDK) {
	if inEmulator() {
		t.Skip("an emulated CPU walks stacks more slowly than the program waits: nearly all are stale")
	}
	jvm := jvmtest.Start(t, jdk, "truth.Waiting")
	if err := offcpu.Try(jvm.PID); err != nil {
		t.Skipf("the kernel tells of no context switches here: %v", err)
	}
	length := "1500"
	if longForm {
		length = "10000"
		if n := envNumber("GOPROF_OVERLOAD", 0); n > 0 {
			overload(t, n, time.Minute)
		}
	}
	jvm.Command("begin")
	again(t, func(t testing.TB) {
		before := chargedOf(jvm.PID)
		var told map[string]lockTime
		sum, sink := recordWaits(t, jvm, func() { told = waitForLocks(jvm, length) })
		after := chargedOf(jvm.PID)
		if sum.Switches == nil || sum.Samples == 0 {
			t.Fatalf("%+v", sum)
		}
		checkOffCPU(t, jdk, sum, sink, before, after)
		checkLockTimes(t, jdk, sink, told)
	})
}

// recordWaits records the waits of a program while it does something.
func recordWaits(t testing.TB, jvm *jvmtest.JVM, do func()) (profile.Summary, *spanSink) {
	t.Helper()
	sink := &spanSink{allocatedSink{last: map[string]uint64{}}, map[int]time.Duration{}, map[string]time.Duration{},
		map[[2]string]time.Duration{}}
	return recordSwitches(t, jvm, session.RecordOptions{Sink: sink}, do), sink
}

// recordSwitches records the waits of a program by context switches while it does something.
func recordSwitches(t testing.TB, jvm *jvmtest.JVM, opt session.RecordOptions, do func()) profile.Summary {
	t.Helper()
	s, err := session.Attach(jvm.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(context.Background())
	visits := make(chan session.Visit)
	opt.Mode, opt.Engine, opt.Interval, opt.Depth = session.WaitingMode, session.PerfEngine, 50*time.Millisecond, 2048
	opt.Visits, opt.Weight = visits, profile.WallTime
	ended := make(chan profile.Summary, 1)
	go func() {
		_, sum, err := s.Record(ctx, opt)
		if err != nil {
			t.Error(err)
		}
		ended <- sum
	}()
	visits <- func(*profile.Profile, *profile.Summary) {}
	do()
	stop()
	return <-ended
}

// lockTime is what truth.Waiting says of the locks of one class: for how long its threads waited, by the clock and
// without the time in which they had a CPU on their way.
type lockTime struct{ clock, off time.Duration }

// waitForLocks has the threads of truth.Waiting wait for so many milliseconds.
func waitForLocks(jvm *jvmtest.JVM, length string) map[string]lockTime {
	told := map[string]lockTime{}
	for _, line := range jvm.Command("wait " + length) {
		var waited, charged time.Duration
		var name string
		fmt.Sscan(line, (*int64)(&waited), (*int64)(&charged), &name)
		told[name] = lockTime{waited, waited - charged}
	}
	return told
}

// chargedOf is the CPU time that the kernel has charged each thread.
func chargedOf(pid int) map[int]time.Duration {
	charged := map[int]time.Duration{}
	list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, e := range list {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, e.Name()))
		var tid int
		var ran int64
		if fmt.Sscan(e.Name(), &tid); err == nil {
			fmt.Sscan(string(b), &ran)
			charged[tid] = time.Duration(ran)
		}
	}
	return charged
}

// checkOffCPU: of threads that were there all the time.
func checkOffCPU(t testing.TB, jdk jvmtest.JDK, sum profile.Summary, sink *spanSink,
	before, after map[int]time.Duration) {
	t.Helper()
	wall := sum.Meta.Duration
	var off []float64
	for tid, ran := range after {
		if was, ok := before[tid]; ok {
			off = append(off, math.Abs(float64(sink.threads[tid]+ran-was-wall))/float64(wall))
		}
	}
	slices.Sort(off)
	// The kernel's charges are read some ms before the recording begins, and behind its end.
	near, slack := 0, 0.02
	for _, d := range off {
		if d <= 0.005+slack/wall.Seconds() {
			near++
		}
	}
	t.Logf("%v: %d threads for %v, CPU and waiting are together the time within 0.5 %% for %d (median %.3f %% off, "+
		"worst %.3f %%); %d waits, lost %v", jdk, len(off), wall, near, 100*off[len(off)/2], 100*off[len(off)-1],
		sum.Switches.Waits, sum.LostBy)
	if near < len(off)*9/10 {
		t.Errorf("only %d of %d threads within 0.5 %%", near, len(off))
	}
}

// waitingLeaves are the states in which threads of truth.Waiting wait for its locks.
var waitingLeaves = map[string]string{"Ledger": "[blocked: truth.Waiting$Ledger]",
	"Cache": "[blocked: truth.Waiting$Cache]",
	"Gauge": "[parked: java.util.concurrent.locks.ReentrantLock$NonfairSync]"}

// checkLockTimes: the classes' waiting times.
func checkLockTimes(t testing.TB, jdk jvmtest.JDK, sink *spanSink, told map[string]lockTime) {
	t.Helper()
	if len(told) != len(waitingLeaves) {
		t.Fatalf("the program told %v", told)
	}
	blocked, parked := sink.leaves["[blocked]"], sink.leaves["[parked]"]
	for name, want := range told {
		got := sink.leaves[waitingLeaves[name]]
		off := func(d time.Duration) float64 { return 100 * (float64(d)/float64(want.off) - 1) }
		all := time.Duration(0)
		for of, d := range sink.inside {
			if of[0] != name {
				continue
			}
			all += d
			if of[1] != waitingLeaves[name] {
				t.Logf("%v: %s: %s %v (%.2f %%)", jdk, name, of[1], d, 100*float64(d)/float64(want.off))
			}
		}
		t.Logf("%v: %s: %v, all that was off a CPU on the way to the lock: %v; the program says %v, %v of it off a CPU "+
			"(%+.2f %%, all %+.2f %%)", jdk, name, got, all, want.clock, want.off, off(got), off(all))
		// Beside other tests goprof itself waits for a CPU, and comes too late to ask for the class of some waits.
		nameless := blocked
		if strings.HasPrefix(waitingLeaves[name], "[parked") {
			nameless = parked
		}
		if longForm && math.Abs(off(all)) > 3 || !longForm && !lockTimeFits(got, nameless, want.off) {
			t.Errorf("%s: %v, all %v, and %v without a class, the program says %v", name, got, all, nameless, want.off)
		}
	}
	for leaf, d := range sink.leaves {
		if strings.HasPrefix(leaf, "[blocked") && d > time.Millisecond {
			t.Logf("%s %v", leaf, d)
		}
	}
}

// lockTimeFits: not more than there was. goprof reads the class while the thread waits: a wait in which it had no CPU
// has no class, and may be of any. So a tenth with the class is enough.
func lockTimeFits(got, nameless, want time.Duration) bool {
	return got <= want*5/4 && got >= want/10 && got+nameless >= want*3/4
}
