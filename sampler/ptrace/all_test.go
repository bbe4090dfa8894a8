//go:build linux

package ptrace

import (
	"testing"

	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// No thread stands still while the snapshot of another one is walked. Here twelve threads that never rest share the
// CPUs, so that most of them stop late.
func TestNobodyWaitsForAWalk(t *testing.T) {
	p := ctest.Run(t, ctest.Shares, "12", "1", "0")
	var threads []Subject
	for range 12 {
		threads = append(threads, Subject{TID: p.Number(t)})
	}
	for range 20 {
		left := map[int]bool{}
		for _, th := range threads {
			left[th.TID] = true
		}
		onTracer(t, p.PID, func(tr *Tracer) {
			All(tr, lastWait, threads, func(snap *look.Look, o Outcome) {
				if o != Taken && o != TimedOut || !left[snap.TID] {
					t.Errorf("%d: %v, %v", snap.TID, o, left[snap.TID])
				}
				delete(left, snap.TID)
				if n := tr.Pending(); n != 0 && o != TimedOut {
					t.Errorf("%d threads are told to stop while one is walked", n)
				}
			})
		})
		if len(left) != 0 {
			t.Fatalf("nothing of %v", left)
		}
	}
	for _, th := range threads {
		ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, th.TID) == 'R' })
	}
}
