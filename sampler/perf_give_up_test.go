//go:build linux

package sampler

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
)

// TestPerfGivesWideUp: where the events of CPUs cannot be opened again, each thread has its own. There is one sentry
// then, however the run comes there.
func TestPerfGivesWideUp(t *testing.T) {
	t.Run("copies", func(t *testing.T) { givesWideUp(t, drainFailed) })
	t.Run("CPUs", func(t *testing.T) { givesWideUp(t, takeInFailing) })
	t.Run("CPUs, failed", func(t *testing.T) { givesWideUp(t, takeInFailed) })
}

// drainFailed: the events could not be opened with copies of another size.
func drainFailed(r *perfRun) {
	r.wide.failed = ErrNoWide
	r.drain()
}

// takeInFailing: they cannot be opened when CPUs have come, because there is no filter.
func takeInFailing(r *perfRun) {
	unix.Close(r.wide.filter)
	r.wide.filter = -1
	r.takeInCPUs()
}

// takeInFailed: they could not be opened when CPUs come.
func takeInFailed(r *perfRun) {
	r.wide.failed = ErrNoWide
	r.takeInCPUs()
}

func givesWideUp(t *testing.T, giveUp func(*perfRun)) {
	needPerf(t)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	cfg := Config{Interval: 10 * time.Millisecond, KnownIn: func(*process.KnownCode) {}}
	r := newPerfRun(NewPerf(p.PID, ctest.CPU()), cfg, NewQueue(64))
	defer r.proc.Close()
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	defer r.close()
	needWide(t, r)
	r.began = ptrace.Monotonic()
	r.post()
	if r.rings.sentry == nil {
		t.Skip("no sentry can be posted here (the race detector, or no OS thread)")
	}
	if giveUp(r); r.wide != nil {
		t.Fatal("it keeps the events of CPUs")
	}
	if r.rings.sentry == nil {
		t.Skip("no sentry can be posted here (the race detector, or no OS thread)")
	}
	if n := len(r.rings.polls); n != 1 || int(r.rings.polls[0].Fd) != r.rings.sentry.bell {
		t.Errorf("%d descriptors are waited for, %+v, and the sentry's bell is %d", n, r.rings.polls, r.rings.sentry.bell)
	}
}
