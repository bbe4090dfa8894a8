//go:build linux

package sampler

import (
	"context"
	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/testdata/ctest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// timesProgram has one thread that never rests, many that run in bursts shorter than a tick, and many that live for
// less than the time between two listings. For each line on stdin it prints, in nanoseconds, the CPU time of all its
// threads, of the bursts and of the short threads.
const timesProgram = `
static volatile long inBursts[64], inShort;
static void *burst(void *x) {
	for (;;) {
		long end = cpu_ns() + 200000;
		while (cpu_ns() < end) for (volatile int i = 0; i < 200; i++);
		inBursts[(long)x] = cpu_ns();
		usleep(20000);
	}
}
static void *spin(void *x) { for (volatile long i = 0;; i++); }
static void *brief(void *x) {
	while (cpu_ns() < 2000000) for (volatile int i = 0; i < 200; i++);
	__sync_fetch_and_add(&inShort, cpu_ns());
	return 0;
}
static void *briefs(void *x) {
	for (;;) {
		pthread_t t;
		if (pthread_create(&t, 0, brief, 0) == 0) pthread_join(t, 0);
		usleep(10000);
	}
}
int main(void) {
	pthread_t t;
	pthread_create(&t, 0, spin, 0);
	pthread_create(&t, 0, briefs, 0);
	for (long i = 0; i < 40; i++) pthread_create(&t, 0, burst, (void *)i);
	ready();
	char line[16];
	while (fgets(line, sizeof line, stdin)) {
		struct rusage u;
		long bursts = 0;
		for (int i = 0; i < 40; i++) bursts += inBursts[i];
		getrusage(RUSAGE_SELF, &u);
		printf("%ld %ld %ld\n", (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000L + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000L, bursts, inShort);
		fflush(stdout);
	}
}`

// used asks the program for its CPU times.
func used(t *testing.T, p *ctest.Program) (all, bursts, short int64) {
	t.Helper()
	if _, err := p.In.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	var n [3]int64
	for i, field := range strings.Fields(p.Line(t)) {
		n[i], _ = strconv.ParseInt(field, 10, 64)
	}
	return n[0], n[1], n[2]
}

// TestTimesAddUp: the CPU time that samples carry, that no sample carries, and that short threads used, is together
// what the program itself measures.
func TestTimesAddUp(t *testing.T) {
	p := ctest.Run(t, timesProgram)
	time.Sleep(100 * time.Millisecond) // until all threads are there
	s, q := New(p.PID, ctest.CPU()), NewQueue(64)
	ctx, cancel := context.WithCancel(context.Background())
	byTID, sum := map[int]int64{}, int64(0)
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		for n := 0; ; n++ {
			snap, ok := <-q.Looks()
			if !ok {
				return
			}
			byTID[snap.TID] += snap.CPU
			sum += snap.CPU
			q.Done(snap)
			if n == 1500 {
				cancel()
			}
		}
	}()
	began := time.Now()
	all, bursts, short := used(t, p)
	got, err := s.Run(ctx, Config{Interval: 2 * time.Millisecond}, q)
	<-consumed
	allAfter, burstsAfter, shortAfter := used(t, p)
	asked := time.Since(began)
	all, bursts, short = allAfter-all, burstsAfter-bursts, shortAfter-short
	if err != nil {
		t.Fatal(err)
	}
	times := got.Times
	t.Logf("%+v; the program: %v, in bursts %v, in short threads %v", times, time.Duration(all), time.Duration(bursts),
		time.Duration(short))
	if sum != int64(times.Sampled) || times.Process != times.Sampled+times.NotSampled+times.Exited {
		t.Errorf("samples carry %d: %+v", sum, times)
	}
	// The program was asked before and after the run. Besides the run, it can have used all CPUs at most.
	beside := (asked - got.Wall) * time.Duration(runtime.NumCPU())
	if off := time.Duration(all) - times.Process; off > times.Process/50+beside || -off > times.Process/50 {
		t.Errorf("%v, and the program used %v, of which at most %v were before and after", times.Process, time.Duration(all),
			beside)
	}
	needTicks(t, &got)
	if times.NotSampled > times.Process/4 {
		t.Errorf("%v of %v are not sampled", times.NotSampled, times.Process)
	}
	// The kernel's charge for short threads does not come in ticks. If CPUs are visited, samples of threads that have
	// used little carry the time of short threads.
	if !got.Visits && times.Exited <= 0 || float64(times.Exited) > 2*float64(short) {
		t.Errorf("ended threads have %v, and short ones used %v", times.Exited, time.Duration(short))
	}
	delete(byTID, longest(byTID)) // the thread that never rests
	others := int64(times.Exited)
	for _, ns := range byTID {
		others += ns
	}
	share := float64(others) / float64(bursts+short)
	t.Logf("bursts and short threads have %.2f of what they used", share)
	if share < 0.8 || share > 1.2 {
		t.Error("that is not what they used")
	}
}

func longest(byTID map[int]int64) (tid int) {
	for id, ns := range byTID {
		if ns > byTID[tid] {
			tid = id
		}
	}
	return tid
}

// A thread sleeps until it is told to stop. Its CPU time is not billed to the place where it slept.
func TestInterruptedSleepIsNotBilled(t *testing.T) {
	for _, c := range []struct {
		what   string
		cpu    *arch.CPU
		call   int64
		result int64
		want   bool
	}{
		{"in no call", amd64.CPU, -1, -516, false},
		{"in a call that has ended", amd64.CPU, 0, 17, false},
		{"in a call that failed", amd64.CPU, 0, -11, false},
		{"read, asleep", amd64.CPU, 0, -512, true},
		{"nanosleep", amd64.CPU, 35, -516, true},
		{"arm64: not at a call", arm64.CPU, -1, 17, false},
		{"arm64: set back to its call", arm64.CPU, 63, 17, true},
	} {
		if got := isInterrupted(c.cpu, c.call, uint64(c.result)); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
