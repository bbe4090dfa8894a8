//go:build linux

package visit

import (
	"runtime"
	"testing"

	"goprof/sampler/ptrace"
	"goprof/sampler/stops"
)

// If as many threads are due as there are CPUs, moving to another CPU gains nothing. One thread less now and then does
// not change that.
func TestManyDue(t *testing.T) {
	cpus := int64(runtime.NumCPU())
	r := &run{Run: stops.Run{Tracer: new(ptrace.Tracer)}}
	if r.manyDue() {
		t.Error("before anything was due")
	}
	for range 200 {
		r.countDue(cpus)
	}
	if r.countDue(cpus - 1); !r.manyDue() || !r.Tracer.Stay {
		t.Errorf("%d threads on as many CPUs: %d", cpus, r.dueMean)
	}
	for range 200 {
		r.countDue(cpus - 1)
	}
	if r.manyDue() || r.Tracer.Stay {
		t.Errorf("%d threads on %d CPUs: %d", cpus-1, cpus, r.dueMean)
	}
}
