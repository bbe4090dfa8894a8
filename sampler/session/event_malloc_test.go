//go:build linux

package session

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/sampler"
	"goprof/testdata/ctest"
)

// mallocs waits until it is told to go on. Then it asks for memory, a number of times in each way.
const mallocs = `
int main(void) {
	char *volatile p, *volatile none = NULL; // realloc(NULL, n) would be compiled as malloc(n)
	ready();
	raise(SIGSTOP);
	for (int i = 0; i < 1000; i++) { p = malloc(100); free(p); }
	for (int i = 0; i < 200; i++) { p = calloc(3, 50); free(p); }
	for (int i = 0; i < 50; i++) { p = realloc(none, 70); p = realloc(p, 700); free(p); }
	say(1);
	for (;;) pause();
}`

// TestMallocIsCountedOnce: each call counts once, whatever the C library calls inside it.
func TestMallocIsCountedOnce(t *testing.T) {
	cpu := ctest.NeedCPU(t)
	if err := sampler.TryProbes(); err != nil {
		t.Skipf("this machine permits no probes: %v", err)
	}
	c := ctest.Run(t, mallocs)
	p, err := process.Open(c.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, plan := &Session{Process: p}, &EventPlan{Name: "malloc"}
	defer plan.Close()
	if err := s.try(plan, &mallocWays[0], 1); errors.Is(err, process.ErrNoImage) {
		t.Skipf("this C library is not glibc: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	engine := sampler.NewEvents(c.PID, cpu, plan.list, false)
	ctx, stop := context.WithCancel(t.Context())
	queue, ended := sampler.NewQueue(eventQueue), make(chan sampler.Stats, 1)
	go func() {
		stats, err := engine.Run(ctx, sampler.Config{Interval: time.Second}, queue)
		if err != nil {
			t.Error(err)
		}
		ended <- stats
	}()
	go func() {
		for l := range queue.Looks() {
			queue.Done(l)
		}
	}()
	ctest.Eventually(t, "the probes are set", func() bool { return len(engine.Stats().Events) > 0 })
	ctest.Eventually(t, "it has stopped itself", func() bool { return ctest.State(c.PID, c.PID) == 'T' })
	unix.Kill(c.PID, syscall.SIGCONT)
	c.Number(t)
	stop()
	calls, bytes := uint64(0), uint64(0)
	for _, e := range (<-ended).Events {
		calls, bytes = calls+e.Hits, bytes+e.Amount
	}
	const wantCalls, wantBytes = 1000 + 200 + 2*50, 1000*100 + 200*150 + 50*(70+700)
	if calls != wantCalls || bytes != wantBytes {
		t.Errorf("%d calls of %d bytes, there were %d of %d", calls, bytes, wantCalls, wantBytes)
	}
}
