//go:build linux

package sampler

import (
	"sync/atomic"
	"testing"
	"time"

	"goprof/process"
	"goprof/testdata/ctest"
)

// A look at a frozen thread either comes at once, or is pending until it is thawed, and is dropped with the tracer. In
// no case is the thread left stopped.
func TestFrozenThread(t *testing.T) {
	for version, f := range ctest.Freezers(t) {
		t.Run("cgroup v"+version, func(t *testing.T) {
			p := ctest.Run(t, ctest.Spin)
			p.Line(t)
			f.Hold(t, p)
			f.Freeze(t)
			ctest.AwaitStandstill(t, p)
			onTracer(t, p.PID, func(tr *Tracer) {
				snap := new(process.Snapshot)
				o := tr.Look(p.PID, Hint{}, snap)
				t.Logf("a look at the frozen thread (state %c): %v", ctest.State(p.PID, p.PID), o)
				if o != Taken && o != Pending {
					t.Errorf("%v %v", o, tr.Err())
				}
			}) // and dropped
			ctest.Eventually(t, "nobody traces it", func() bool { return ctest.TracerOf(p.PID) == 0 })
			onTracer(t, p.PID, func(tr *Tracer) {
				snap := new(process.Snapshot)
				o := tr.Look(p.PID, Hint{}, snap)
				f.Thaw(t)
				ctest.Eventually(t, "taken", func() bool {
					if o == Pending {
						if _, got, ok := tr.Collect(); ok {
							o = got
						}
					}
					return o == Taken
				})
				if len(snap.Stack) < 16384 {
					t.Errorf("%d bytes of its stack", len(snap.Stack))
				}
			})
			ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' && ctest.TracerOf(p.PID) == 0 })
		})
	}
}

// A process that is frozen in the middle of a recording has no samples while it is, and those that it is owed afterwards.
func TestFreezeWhileSampling(t *testing.T) {
	for version, f := range ctest.Freezers(t) {
		t.Run("cgroup v"+version, func(t *testing.T) {
			p := ctest.Run(t, ctest.Spin)
			p.Line(t)
			f.Hold(t, p)
			const interval = 2 * time.Millisecond
			before := ctest.Ran(t, p.PID, p.PID)
			got := session(t, p.PID, Config{Interval: interval}, 16, func(seen *atomic.Int64) {
				for round := range int64(3) {
					untilSamples(50 * (round + 1))(seen)
					f.Freeze(t)
					ctest.AwaitStandstill(t, p)
					time.Sleep(100 * time.Millisecond)
					f.Thaw(t)
				}
				untilSamples(200)(seen)
			})
			used := time.Duration(ctest.Ran(t, p.PID, p.PID) - before)
			t.Logf("%d samples, %d late, lost %v, %v used", got.Taken, got.Late, got.Lost, used)
			if got.err != nil || got.Taken < 200 || got.LostSum() > 3 ||
				got.Attempted > int64(used/interval)+3+chance(int64(used/interval)) {
				t.Errorf("%v: %d looks, lost %v, in %v of CPU time", got.err, got.Attempted, got.Lost, used)
			}
			ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' && ctest.TracerOf(p.PID) == 0 })
		})
	}
}
