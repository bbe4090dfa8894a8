//go:build linux

package session

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process"
	"goprof/sampler"
	"goprof/sampler/events"
	"goprof/testdata/ctest"
)

// mallocs waits until the test continues it. Then it allocates memory, a number of times in each way.
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

// TestMallocIsCountedOnce: each call counts once, whichever functions the C library calls inside it.
func TestMallocIsCountedOnce(t *testing.T) {
	cpu := ctest.NeedCPU(t)
	if err := events.TryProbes(); err != nil {
		t.Skipf("this machine permits no probes: %v", err)
	}
	c := ctest.Run(t, mallocs)
	end := countMallocs(t, cpu, c, 1)
	unix.Kill(c.PID, syscall.SIGCONT)
	c.Number(t)
	calls, bytes := uint64(0), uint64(0)
	for _, e := range end() {
		calls, bytes = calls+e.Hits, bytes+e.Amount
	}
	const wantCalls, wantBytes = 1000 + 200 + 2*50, 1000*100 + 200*150 + 50*(70+700)
	if calls != wantCalls || bytes != wantBytes {
		t.Errorf("%d calls of %d bytes, there were %d of %d", calls, bytes, wantCalls, wantBytes)
	}
}

// countMallocs sets probes at malloc and similar functions, in a program that stops itself.
func countMallocs(t testing.TB, cpu *arch.CPU, c *ctest.Program, every uint64) (end func() []sampler.EventCount) {
	t.Helper()
	_, end = countHits(t, cpu, c, &mallocWays[0], every, 1e9)
	return end
}

// countHits sets probes in a program that stops itself.
func countHits(t testing.TB, cpu *arch.CPU, c *ctest.Program, way *presetWay, every uint64,
	most float64) (plan *EventPlan, end func() []sampler.EventCount) {
	t.Helper()
	p, err := process.Open(c.PID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	s, plan := &Session{Process: p}, &EventPlan{Name: "malloc"}
	t.Cleanup(plan.Close)
	if err := s.try(plan, way, every); errors.Is(err, process.ErrNoImage) {
		t.Skipf("this C library is not glibc: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	engine := events.New(c.PID, cpu, plan.list, false)
	ctx, stop := context.WithCancel(t.Context())
	queue, ended := sampler.NewQueue(eventQueue), make(chan sampler.Stats, 1)
	go func() {
		stats, err := engine.Run(ctx, sampler.Config{Interval: time.Second, MostSamples: 1e9, MaxOverhead: most}, queue)
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
	return plan, func() []sampler.EventCount {
		stop()
		return (<-ended).Events
	}
}

// dearMallocs prints how many ns of CPU time a million calls of malloc and free took, before and after it stopped
// itself.
const dearMallocs = `
static long work(void) {
	struct timespec a, b;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (int i = 0; i < 1000000; i++) { char *volatile p = malloc(100); free(p); }
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec;
}
int main(void) {
	ready();
	say(work());
	raise(SIGSTOP);
	say(work());
	for (;;) pause();
}`

// BenchmarkHit measures what a hit costs its thread, in a million calls of malloc and of free (package agent, hitCost;
// docs/evidence/events.md). For presetPairs there are three hits: at the beginning of malloc, at its end, and at free.
//
//	go test ./session -run '^$' -bench Hit -benchtime 1x
func BenchmarkHit(b *testing.B) {
	for name, way := range map[string]*presetWay{"malloc": &mallocWays[0], "pairs": &leakWays[len(leakWays)-1]} {
		b.Run(name, func(b *testing.B) { benchmarkHit(b, way) })
	}
}

func benchmarkHit(b *testing.B, way *presetWay) {
	cpu := ctest.NeedCPU(b)
	if err := events.TryProbes(); err != nil {
		b.Skipf("this machine permits no probes: %v", err)
	}
	took, calls := int64(0), uint64(0)
	for range b.N {
		c := ctest.Run(b, dearMallocs)
		before := c.Number(b)
		_, end := countHits(b, cpu, c, way, 1<<31, 1e9)
		unix.Kill(c.PID, syscall.SIGCONT)
		took += int64(c.Number(b)) - int64(before)
		for _, e := range end() {
			calls += e.Hits
		}
	}
	b.ReportMetric(float64(took)/float64(max(calls, 1)), "ns/malloc")
}
