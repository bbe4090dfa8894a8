/*
 * How long does it take to read a thread's CPU clock right after a hand-over, and a moment later? docs/evidence/accuracy.md has
 * the results.
 *
 * Four pairs of threads compute some 40 us and hand over: by a lock and a condition, or by a yield. After a hand-over a
 * thread reads its CPU clock three times. The CPU's counter says how long each reading takes.
 *
 *   gcc -O2 -o clocks clocks.c -lpthread
 *   ./clocks lock|yield SECONDS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
static uint64_t ticks(void) { unsigned cpu; return __rdtscp(&cpu); }
#else
static uint64_t ticks(void) { uint64_t t; __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t)); return t; }
#endif

enum { PAIRS = 4, READINGS = 3, MOST = 1 << 18 };

static int locks;
static struct pair {
	pthread_mutex_t lock;
	pthread_cond_t turned;
	int turn;
} pairs[PAIRS];
static uint32_t took[READINGS][MOST];
static volatile uint64_t sink[2 * PAIRS];
static int taken;

static long long now(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void hand_over(struct pair *p, int side) {
	if (!locks) {
		sched_yield();
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->turn = 1 - side;
	pthread_cond_signal(&p->turned);
	while (p->turn != side) pthread_cond_wait(&p->turned, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

static void *work(void *arg) {
	int me = (intptr_t)arg;
	unsigned seed = me + 1;
	for (uint64_t x = seed;; sink[me] = x) {
		for (int n = 12000 + rand_r(&seed) % 8000; n > 0; n--) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
		hand_over(&pairs[me / 2], me % 2);
		if (rand_r(&seed) % 32) continue;
		uint64_t at[READINGS + 1];
		ticks(); /* its own code is no part of the first reading */
		at[0] = ticks();
		for (int i = 0; i < READINGS; i++) {
			now(CLOCK_THREAD_CPUTIME_ID);
			at[i + 1] = ticks();
		}
		int which = __atomic_fetch_add(&taken, 1, __ATOMIC_SEQ_CST);
		for (int i = 0; i < READINGS && which < MOST; i++) took[i][which] = at[i + 1] - at[i];
	}
	return 0;
}

static int compare(const void *a, const void *b) {
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv) {
	if (argc < 3) return 2;
	locks = !strcmp(argv[1], "lock");
	for (int i = 0; i < PAIRS; i++) {
		pthread_mutex_init(&pairs[i].lock, 0);
		pthread_cond_init(&pairs[i].turned, 0);
	}
	pthread_t t;
	long long began = now(CLOCK_MONOTONIC);
	uint64_t first = ticks();
	for (int i = 0; i < 2 * PAIRS; i++) pthread_create(&t, 0, work, (void *)(intptr_t)i);
	usleep(atof(argv[2]) * 1e6);
	int n = __atomic_load_n(&taken, __ATOMIC_SEQ_CST);
	n = n < MOST ? n : MOST;
	double ns = (double)(now(CLOCK_MONOTONIC) - began) / (ticks() - first);
	printf("%s, %d times, ns:", argv[1], n);
	for (int i = 0; i < READINGS; i++) {
		qsort(took[i], n, sizeof took[i][0], compare);
		double sum = 0;
		for (int j = 0; j < n / 100 * 99; j++) sum += took[i][j]; /* without what interrupted it */
		printf(" reading %d p50 %.0f p90 %.0f mean %.0f;", i + 1, took[i][n / 2] * ns, took[i][n / 10 * 9] * ns,
		       sum / (n / 100 * 99) * ns);
	}
	printf(" the mean is of the shortest 99 of 100\n");
	fflush(stdout);
	_exit(0);
}
