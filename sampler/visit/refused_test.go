//go:build linux

package visit

import (
	"testing"
	"time"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/sampler/stops"
	"goprof/sampler/threads"
	"goprof/testdata/ctest"
)

// TestStopsAreRefused: a filter on goprof may refuse each stop, while looks without a stop succeed. They do not count
// against the refusals, and a run that ends with no other samples has failed.
func TestStopsAreRefused(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	proc := procfs.OpenDir(p.PID)
	defer proc.Close()
	q := sampler.NewQueue(4)
	r := &run{Run: stops.Run{Proc: proc, Queue: q, Tracer: new(ptrace.Tracer)},
		scan: threads.New(proc, 10*time.Millisecond, 10), visiting: true}
	r.Hand = q.Done
	defer r.scan.Close()
	for range 20 {
		for _, unstopped := range []bool{false, true} {
			snap, o := q.Take(), ptrace.NotPermitted
			if snap.Waiting.Unstopped = unstopped; unstopped {
				o = ptrace.Taken
			}
			r.account(snap, o)
		}
	}
	if r.Failed == nil {
		t.Errorf("%d refusals in a row do not end the run", r.Stats.Lost[ptrace.NotPermitted])
	}
	if !onlyUnstopped(&r.Stats) {
		t.Error("no thread was stopped")
	}
	if r.Stats.Pauses.Add(10_000); onlyUnstopped(&r.Stats) {
		t.Error("a thread was stopped")
	}
}
