//go:build linux

package visit

import (
	"context"
	"strconv"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// burstsProgram has 200 threads that each run for 0.2 ms and then sleep for 19.8 ms, and one that never rests. For
// each line on stdin it prints the CPU times of both, by the threads' own clocks.
const burstsProgram = `
static volatile long used[201];
static void *burst(void *x) {
	for (;;) {
		long end = cpu_ns() + 200000;
		while (cpu_ns() < end) for (volatile int i = 0; i < 200; i++);
		used[(long)x] = cpu_ns();
		usleep(19800);
	}
}
static void *spin(void *x) { say(gettid_()); for (;;) { for (volatile int i = 0; i < 100000; i++); used[200] = cpu_ns(); } }
int main(void) {
	pthread_t t;
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	ready();
	pthread_create(&t, &a, spin, 0);
	for (long i = 0; i < 200; i++) pthread_create(&t, &a, burst, (void *)i);
	char line[16];
	while (fgets(line, sizeof line, stdin)) {
		long sum = 0;
		for (int i = 0; i < 200; i++) sum += used[i];
		say(sum);
		say(used[200]);
	}
}`

// TestShortBursts: some threads run in bursts that are shorter than the kernel's ticks, and one never rests. Both get
// as many samples as their CPU time is worth, and the samples carry that time.
func TestShortBursts(t *testing.T) {
	sampletest.Proof(t)
	const interval = 2 * time.Millisecond
	p := ctest.Run(t, burstsProgram)
	spinner := p.Number(t)
	ask := func() (bursts, spin int64) {
		p.In.Write([]byte("\n"))
		return int64(p.Number(t)), int64(p.Number(t))
	}
	time.Sleep(200 * time.Millisecond)
	s, q := New(p.PID, ctest.CPU()), sampler.NewQueue(64)
	ctx, cancel := context.WithCancel(context.Background())
	var number, weight [2]int64 // of the bursts, and of the thread that never rests
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		n := 0
		for snap := range q.Looks() {
			which := 0
			if snap.TID == spinner {
				which = 1
			}
			number[which]++
			weight[which] += snap.CPU
			q.Done(snap)
			if n++; n == 2000 {
				cancel()
			}
		}
	}()
	bursts, spin := ask()
	got, err := s.Run(ctx, sampler.Config{Interval: interval}, q)
	<-consumed
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	burstsAfter, spinAfter := ask()
	bursts, spin = burstsAfter-bursts, spinAfter-spin
	share := float64(bursts) / float64(bursts+spin)
	seen := float64(number[0]) / float64(number[0]+number[1])
	weighed := float64(weight[0]) / float64(weight[0]+weight[1])
	t.Logf("200 threads in bursts used %v, one that never rests %v: share %.3f, of samples %.3f, of their CPU time "+
		"%.3f; skipped %d of %d; %+v",
		time.Duration(bursts), time.Duration(spin), share, seen, weighed, got.Skipped, got.Ticks, got.Times)
	sampletest.NeedTicks(t, &got)
	if seen < 0.8*share-0.03 || seen > 1.25*share+0.03 {
		t.Errorf("bursts have %.3f of the samples and %s of the time", seen, strconv.FormatFloat(share, 'f', 3, 64))
	}
	if weighed < 0.75*share-0.03 || weighed > 1.3*share+0.03 {
		t.Errorf("bursts have %.3f of the CPU time that samples carry and %.3f of what was used", weighed, share)
	}
}
