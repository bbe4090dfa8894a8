// spin: the target of `make bench`. One thread only reads its clock, and so sees each moment at which it did not run.
// 16 KB of its stack are in use above its stack pointer.
//
//   spin            prints "TID STACKTOP", then obeys its standard input:
//   w MILLISECONDS  prints the gaps of the next so many milliseconds, in ns: "N g1 g2 ... gN"
//   r 0, r 1        the thread rests, and runs again; it runs at first
//
// Spin.java keeps the same protocol.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 16384, MOST = 1 << 18, SHORTEST = 1000 };

static int64_t gaps[MOST];
static volatile int64_t until; // the window that is measured ends then
static volatile int count;
static volatile int done;
static volatile int resting;

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static _Noreturn void *spin(void *unused) {
	volatile char pad[STACK];
	memset((void *)pad, 0x5a, sizeof pad);
	printf("%ld %lu\n", syscall(SYS_gettid), (unsigned long)(uintptr_t)(pad + STACK));
	fflush(stdout);
	int64_t before = now(), end = 0;
	for (;;) {
		int64_t at = now();
		if (end && at - before > SHORTEST && count < MOST)
			gaps[count++] = at - before;
		before = at;
		if (end && at >= end)
			end = 0, done = 1;
		if (until)
			end = until, until = 0;
		if (!end)
			while (resting)
				usleep(1000);
	}
}

int main(void) {
	memset(gaps, 1, sizeof gaps); // so that no page is missing later
	pthread_t thread;
	pthread_create(&thread, NULL, spin, NULL);
	char what;
	long ms;
	while (scanf(" %c %ld", &what, &ms) == 2) {
		if (what == 'r') {
			resting = ms == 0;
			continue;
		}
		done = count = 0;
		until = now() + ms * 1000000LL;
		struct timespec nap = {ms / 1000, ms % 1000 * 1000000};
		nanosleep(&nap, NULL);
		while (!done)
			usleep(1000);
		printf("%d", count);
		for (int i = 0; i < count; i++)
			printf(" %ld", (long)gaps[i]);
		puts("");
		fflush(stdout);
	}
	return 0;
}
