//go:build linux

package ptrace

import (
	"testing"

	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// A look at a frozen thread either comes at once, or is pending until the thread is thawed and is dropped with the
// tracer. In no case does the thread stay stopped. Once it is thawed, a look succeeds, unless this OS thread had no CPU
// in time. That happens a few times in a row on a busy machine.
func TestFrozenThread(t *testing.T) {
	for version, f := range ctest.Freezers(t) {
		t.Run("cgroup v"+version, func(t *testing.T) {
			p := ctest.Run(t, ctest.Spin)
			p.Line(t)
			f.Hold(t, p)
			f.Freeze(t)
			ctest.AwaitStandstill(t, p)
			onTracer(t, p.PID, func(tr *Tracer) {
				snap := new(look.Look)
				o := tr.Look(p.PID, Hint{}, snap)
				t.Logf("a look at the frozen thread (state %c): %v", ctest.State(p.PID, p.PID), o)
				if o != Taken && o != Pending {
					t.Errorf("%v %v", o, tr.Err())
				}
			}) // the tracer's end drops the look
			ctest.Eventually(t, "no process traces it", func() bool { return ctest.TracerOf(p.PID) == 0 })
			onTracer(t, p.PID, func(tr *Tracer) {
				snap := new(look.Look)
				o := tr.Look(p.PID, Hint{}, snap)
				f.Thaw(t)
				const mostLate = 200
				late := 0
				ctest.Eventually(t, "taken", func() bool {
					if o == Pending {
						if _, got, ok := tr.Collect(); ok {
							o = got
						}
					} else if o == Missed || o == ReadLate {
						late++
						o = tr.Look(p.PID, Hint{}, snap)
					}
					return o == Taken || late > mostLate
				})
				if t.Logf("%d looks were late", late); o != Taken {
					t.Errorf("%v after %d late looks", o, late)
				}
				if len(snap.Stack) < 16384 {
					t.Errorf("%d bytes of its stack", len(snap.Stack))
				}
			})
			ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' && ctest.TracerOf(p.PID) == 0 })
		})
	}
}
