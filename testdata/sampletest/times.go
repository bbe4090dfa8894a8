//go:build linux

package sampletest

import (
	"strconv"
	"strings"
	"testing"

	"goprof/testdata/ctest"
)

// TimesProgram has one thread that never rests, many that run in bursts shorter than a tick, and many that live for
// less than the time between two listings. For each line on stdin it prints, in nanoseconds, the CPU time of all its
// threads, of the bursts and of the short threads.
const TimesProgram = `
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

// Used asks the program for its CPU times.
func Used(t *testing.T, p *ctest.Program) (all, bursts, short int64) {
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
