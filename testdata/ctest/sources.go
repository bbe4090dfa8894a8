//go:build linux

package ctest

// head begins all the C programs.
const head = `
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int gettid_(void) { return syscall(SYS_gettid); }
static long cpu_ns(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static void ready(void) { puts("ready"); fflush(stdout); }
static void say(long n) { printf("%ld\n", n); fflush(stdout); }
`

// Spin keeps 16 KB of stack in use and spins.
const Spin = `
int main(void) {
	volatile char pad[16384];
	memset((void *)pad, 0x5a, sizeof pad);
	ready();
	say((long)(uintptr_t)pad);
	for (volatile long i = 0;; i++) pad[i & 1023] = 0x5a;
}`

// Execs starts so many threads that wait, and then another one that runs the program anew, without end.
const Execs = `
static char **again;
static void *waits(void *x) { for (;;) pause(); }
static void *execs(void *x) { usleep(200); execv("/proc/self/exe", again); _exit(1); }
int main(int argc, char **argv) {
	pthread_t t;
	again = argv;
	ready();
	for (int i = 0; i < atoi(argv[1]); i++) pthread_create(&t, 0, waits, 0);
	pthread_create(&t, 0, execs, 0);
	pause();
}`

// Shares starts threads that are busy for so many microseconds of each period:
// arguments are count, busy, period, and so on. It says their tids.
const Shares = `
struct job { long busy, period; };
static void *work(void *x) {
	struct job *j = x;
	say(gettid_());
	for (;;) {
		long end = cpu_ns() + j->busy * 1000;
		while (cpu_ns() < end) for (volatile int i = 0; i < 200; i++);
		if (j->period > j->busy) { usleep(j->period - j->busy); }
	}
}
int main(int argc, char **argv) {
	ready();
	for (int i = 1; i + 2 < argc; i += 3) {
		struct job *j = malloc(sizeof *j);
		j->busy = atol(argv[i + 1]); j->period = atol(argv[i + 2]);
		for (int k = 0; k < atoi(argv[i]); k++) {
			pthread_t t;
			pthread_attr_t a;
			pthread_attr_init(&a);
			pthread_attr_setstacksize(&a, 65536);
			if (pthread_create(&t, &a, work, j) != 0) { perror("thread"); exit(1); }
		}
	}
	for (;;) pause();
}`

// Churn makes and ends threads as fast as it can, and says how many it made when told to stop.
const Churn = `
static volatile int stop;
static void *body(void *x) { for (volatile int i = 0; i < 20000; i++); return 0; }
static void *churn(void *x) {
	long n = 0;
	while (!stop) { pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, body, 0); for (int i = 0; i < 4; i++) { pthread_join(t[i], 0); n++; } }
	return (void *)n;
}
int main(void) {
	pthread_t t; void *n; char c;
	ready();
	pthread_create(&t, 0, churn, 0);
	read(0, &c, 1);
	stop = 1;
	pthread_join(t, &n);
	say((long)n);
}`

// Seizes seizes the process in its first argument and holds on to it.
const Seizes = `
int main(int argc, char **argv) {
	if (ptrace(PTRACE_SEIZE, atoi(argv[1]), 0, 0) != 0) return 1;
	ready();
	pause();
}`
