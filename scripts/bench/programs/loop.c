// loop: the yardstick of `make bench`. It does the least that a profiler that stops a thread must do, in compiled C.
//
//   loop TID HZ SECONDS [BYTES [PRIORITY]]      HZ 0: as fast as possible; PRIORITY: real-time
//
// At each tick: PTRACE_SEIZE, PTRACE_INTERRUPT, wait4 polled for 50 us and then blocking, the registers, one
// process_vm_readv of BYTES (16 KB) from the stack pointer upward, PTRACE_DETACH. Prints "SAMPLES CPU_NS" at the end.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <elf.h>

enum { POLL_NS = 50000 };

static int64_t clock_ns(clockid_t id) {
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// await waits for the stop of tid. 0: it has ended.
static int await(pid_t tid) {
	int status = 0;
	int64_t end = clock_ns(CLOCK_MONOTONIC) + POLL_NS;
	pid_t got;
	while ((got = wait4(tid, &status, __WALL | WNOHANG, NULL)) == 0 && clock_ns(CLOCK_MONOTONIC) < end)
		;
	if (got == 0)
		got = wait4(tid, &status, __WALL, NULL);
	return got == tid && WIFSTOPPED(status) ? status : 0;
}

int main(int argc, char **argv) {
	if (argc < 4) {
		fprintf(stderr, "usage: loop TID HZ SECONDS [BYTES]\n");
		return 2;
	}
	pid_t tid = atoi(argv[1]);
	double hz = atof(argv[2]);
	int64_t interval = hz > 0 ? 1e9 / hz : 0;
	size_t bytes = argc > 4 ? atol(argv[4]) : 16384;
	char *copy = malloc(bytes);
	for (size_t i = 0; i < bytes; i++)
		copy[i] = 1;
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	struct sched_param priority = {argc > 5 ? atoi(argv[5]) : 0};
	if (priority.sched_priority > 0 && sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
		perror("sched_setscheduler");
		return 1;
	}
	struct user_regs_struct regs;
	struct iovec rv = {&regs, sizeof regs};
	long samples = 0;
	int64_t at = clock_ns(CLOCK_MONOTONIC), end = at + (int64_t)(atof(argv[3]) * 1e9);
	for (; at < end; at = interval ? at + interval : clock_ns(CLOCK_MONOTONIC)) {
		struct timespec ts = {at / 1000000000, at % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		if (ptrace(PTRACE_SEIZE, tid, 0, 0) != 0) {
			perror("PTRACE_SEIZE");
			return 1;
		}
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		int status = await(tid);
		if (status == 0) {
			fprintf(stderr, "the thread has ended\n");
			return 1;
		}
		rv.iov_len = sizeof regs;
		if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &rv) == 0) {
#if defined(__x86_64__)
			void *sp = (void *)regs.rsp;
#else
			void *sp = (void *)regs.sp;
#endif
			struct iovec local = {copy, bytes}, remote = {sp, bytes};
			if (process_vm_readv(tid, &local, 1, &remote, 1, 0) > 0)
				samples++;
		}
		// A signal that has won the race with our stop is passed on.
		ptrace(PTRACE_DETACH, tid, 0, status >> 16 == 0 ? WSTOPSIG(status) : 0);
	}
	printf("%ld %ld\n", samples, (long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
