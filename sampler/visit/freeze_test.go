//go:build linux

package visit

import (
	"sync/atomic"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// A process is frozen in the middle of a recording. While frozen it has no samples. Thawed, it gets as many as its CPU
// time is worth.
func TestFreezeWhileSampling(t *testing.T) {
	for version, f := range ctest.Freezers(t) {
		t.Run("cgroup v"+version, func(t *testing.T) {
			p := ctest.Run(t, ctest.Spin)
			p.Line(t)
			f.Hold(t, p)
			const interval = 2 * time.Millisecond
			before := ctest.Ran(t, p.PID, p.PID)
			got := session(t, p.PID, sampler.Config{Interval: interval}, 16, func(seen *atomic.Int64) {
				for round := range int64(3) {
					sampletest.UntilSamples(50 * (round + 1))(seen)
					f.Freeze(t)
					ctest.AwaitStandstill(t, p)
					time.Sleep(100 * time.Millisecond)
					f.Thaw(t)
				}
				sampletest.UntilSamples(200)(seen)
			})
			used := time.Duration(ctest.Ran(t, p.PID, p.PID) - before)
			t.Logf("%d samples, lost %v, %v used", got.Taken, got.Lost, used)
			// The queue is full if the test itself had no CPU, and looks are missed if the sampling thread had none.
			lost := got.LostSum() - got.Lost[ptrace.QueueFull] - got.Lost[ptrace.Missed]
			if got.Err != nil || got.Taken < 200 || lost > 3 ||
				got.Attempted > int64(used/interval)+3+sampletest.Chance(int64(used/interval)) {
				t.Errorf("%v: %d looks, lost %v, in %v of CPU time", got.Err, got.Attempted, got.Lost, used)
			}
			ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' && ctest.TracerOf(p.PID) == 0 })
		})
	}
}
