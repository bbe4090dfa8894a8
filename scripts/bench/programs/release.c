// release: how should a tracer with real-time priority release a thread whose CPU it has taken?
//
// A child reads its clock and notes each gap of 15 us or more. Each millisecond the tracer takes the child's CPU, stops
// it as goprof does, reads its registers and 16 KB of its stack, and releases it:
//
//   fifo  with its own real-time priority. The kernel wakes the child on an idle CPU, if there is one.
//   idle  as SCHED_IDLE. The child's own CPU counts as idle then (kernel/sched/fair.c, select_idle_sibling), so the child
//         goes on at once where it was. Another thread of the tracer gives it its priority back 60 us later.
//
//   cc -O2 -pthread -o release release.c && ./release     (root, two CPUs)
//
// For five seconds of each way it prints the longest gaps, as many as there were stops.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__
#define STACK_POINTER rsp
#else
#define STACK_POINTER sp
#endif

enum { MOST = 1 << 16, SHORTEST = 15000, STEP = 1000000, BACK = 60000, SECONDS = 5 };

static struct shared { volatile int cpu, count; int64_t gaps[MOST]; } *shared;
static int tracer, booster, asked;
static int64_t backAt;

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleepUntil(int64_t at) {
	struct timespec t = {at / 1000000000, at % 1000000000};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void policy(int tid, int which, int priority) {
	struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t deadline[3]; } a = {
		sizeof a, which, 0, 0, priority, {0}};
	if (syscall(SYS_sched_setattr, tid, &a, 0)) {
		perror("sched_setattr");
		_exit(1);
	}
}

static void bindTo(int tid, int cpu) {
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(tid, sizeof one, &one);
}

// boost gives the tracer its priority back, at backAt, each time it is asked.
static void *boost(void *unused) {
	booster = syscall(SYS_gettid);
	policy(0, SCHED_FIFO, 2);
	for (int seen = 0;;) {
		while (__atomic_load_n(&asked, __ATOMIC_SEQ_CST) == seen)
			syscall(SYS_futex, &asked, FUTEX_WAIT, seen, NULL, NULL, 0);
		seen = asked;
		sleepUntil(backAt);
		policy(tracer, SCHED_FIFO, 1);
	}
	return unused;
}

static _Noreturn void spin(void) {
	for (int64_t before = now();;) {
		int64_t at = now();
		if (at - before >= SHORTEST && shared->count < MOST)
			shared->gaps[shared->count++] = at - before;
		shared->cpu = sched_getcpu();
		before = at;
	}
}

static void look(int tid, int idle) {
	static char stack[16384];
	siginfo_t info;
	struct user_regs_struct regs;
	struct iovec all = {&regs, sizeof regs};
	if (ptrace(PTRACE_SEIZE, tid, 0, 0)) {
		perror("ptrace");
		_exit(1);
	}
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	waitid(P_PID, tid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL);
	ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all);
	struct iovec to = {stack, sizeof stack}, from = {(void *)regs.STACK_POINTER, sizeof stack};
	process_vm_readv(tid, &to, 1, &from, 1, 0);
	if (idle) {
		backAt = now() + BACK;
		__atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &asked, FUTEX_WAKE, 1, NULL, NULL, 0);
		policy(0, SCHED_IDLE, 0);
	}
	ptrace(PTRACE_DETACH, tid, 0, 0);
}

static int longer(const void *a, const void *b) {
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x < y) - (x > y);
}

static void measure(int tid, int idle) {
	int64_t next = now() + STEP, end = next + SECONDS * 1000000000LL;
	int stops = 0, at = -1;
	for (shared->count = 0; next < end; stops++) {
		int cpu = shared->cpu;
		if (cpu != at) {
			bindTo(0, at = cpu);
			bindTo(booster, at);
		}
		sleepUntil(next);
		look(tid, idle);
		next += STEP;
		if (next < now())
			next = now() + STEP;
	}
	int have = shared->count;
	qsort(shared->gaps, have, sizeof shared->gaps[0], longer);
	if (have < stops)
		stops = have;
	printf("%s: %d gaps, p50 %.1f us, p90 %.1f, p99 %.1f\n", idle ? "idle" : "fifo", stops,
	       shared->gaps[stops / 2] / 1e3, shared->gaps[stops / 10] / 1e3, shared->gaps[stops / 100] / 1e3);
}

int main(void) {
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int child = fork();
	if (child == 0)
		spin();
	pthread_t thread;
	tracer = syscall(SYS_gettid);
	pthread_create(&thread, NULL, boost, NULL);
	usleep(100000);
	policy(0, SCHED_FIFO, 1);
	for (int round = 0; round < 3; round++)
		for (int idle = 0; idle < 2; idle++)
			measure(child, idle);
	kill(child, SIGKILL);
	return 0;
}
