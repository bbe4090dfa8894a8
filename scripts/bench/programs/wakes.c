// wakes: the cost of a wake-up alone, which is the least that a preempter (sampler/ptrace/preempter.go) can cost.
//
//   wakes CPU HZ SECONDS [AWAKE]      AWAKE 1: a thread that counts as idle (SCHED_IDLE) keeps the CPU awake
//
// A thread with real-time priority on that CPU sleeps until the next moment, again and again. Prints its CPU time of one
// wake-up, in us. Needs root.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile int over;

static int64_t clock_ns(clockid_t id) {
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *stay_awake(void *unused) {
	struct sched_param none = {0};
	if (sched_setscheduler(0, SCHED_IDLE, &none) != 0)
		perror("SCHED_IDLE");
	while (!over)
		;
	return unused;
}

int main(int argc, char **argv) {
	if (argc < 4) {
		fprintf(stderr, "usage: wakes CPU HZ SECONDS [AWAKE]\n");
		return 2;
	}
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET(atoi(argv[1]), &here);
	if (sched_setaffinity(0, sizeof here, &here) != 0) {
		perror("sched_setaffinity");
		return 1;
	}
	pthread_t other;
	int awake = argc > 4 && atoi(argv[4]);
	if (awake && (errno = pthread_create(&other, NULL, stay_awake, NULL)) != 0) {
		perror("pthread_create");
		return 1;
	}
	struct sched_param priority = {3};
	if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
		perror("sched_setscheduler");
		return 1;
	}
	int64_t interval = 1e9 / atof(argv[2]), at = clock_ns(CLOCK_MONOTONIC);
	int64_t end = at + (int64_t)(atof(argv[3]) * 1e9), before = clock_ns(CLOCK_THREAD_CPUTIME_ID), wakes = 0;
	for (; at < end; at += interval, wakes++) {
		struct timespec ts = {at / 1000000000, at % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
	printf("%.1f\n", (clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e3 / wakes);
	over = 1;
	if (awake)
		pthread_join(other, NULL);
	return 0;
}
