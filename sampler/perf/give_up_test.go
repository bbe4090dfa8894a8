//go:build linux

package perf

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
)

// TestPerfGivesUp: if the events of CPUs cannot be opened again, the run ends with that error.
func TestPerfGivesUp(t *testing.T) {
	for name, fail := range map[string]func(*perfRun){
		"copies of another size": func(r *perfRun) {
			r.wide.failed = ErrNoWide
			r.drain()
		},
		"CPUs have come, and there is no filter": func(r *perfRun) {
			unix.Close(r.wide.filter)
			r.wide.filter = -1
			r.takeInCPUs()
		},
		"CPUs have come": func(r *perfRun) {
			r.wide.failed = ErrNoWide
			r.takeInCPUs()
		},
	} {
		t.Run(name, func(t *testing.T) { givesUp(t, fail) })
	}
}

func givesUp(t *testing.T, fail func(*perfRun)) {
	needWide(t)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	cfg := sampler.Config{Interval: 10 * time.Millisecond, KnownIn: func(*process.KnownCode) {}}
	r := newPerfRun(New(p.PID, ctest.CPU()), cfg, sampler.NewQueue(64))
	defer r.proc.Close()
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.began = ptrace.Monotonic()
	r.startChecker()
	if fail(r); r.failed == nil {
		t.Fatal("it goes on")
	}
	r.loop(t.Context())
}
