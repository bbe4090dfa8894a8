/*
 * Are the samples of a thread with short sleeps in proportion to its CPU time? docs/evidence/visits.md has the results.
 *
 * Threads on CPU 1 (four) compute some 40 us and sleep 20 us, yield, or do nothing. A lone thread's yield comes back at
 * once. They measure the cost of a sleep or yield by their own clock, around 16 rounds with it and 16 without it: two
 * readings next to a hand-over are wrong by up to 1 us. Samples of CPU 1 come from
 *   timer   the timer of a perf event of that CPU, as goprof --engine perf has it
 *   ipi     an interrupt that CPU 0 sends to CPU 1, and a perf event of the tracepoint there
 *
 *   mount -t tracefs nodev /sys/kernel/tracing
 *   gcc -O2 -o sleeps sleeps.c -lpthread
 *   ./sleeps sleep|yield|nothing timer|ipi SECONDS \
 *       $(cat /sys/kernel/tracing/events/irq_vectors/call_function_single_entry/id) [THREADS]
 */
#define _GNU_SOURCE
#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, ROUNDS = 16, INTERVAL = 1000000, RING = 64 * 4096 };

static int threads = 4, tids[MOST], begun, sleeps, yields;
static volatile uint64_t computed[MOST];
static long long took[MOST][2], stepped[MOST][2]; /* of rounds with and without handing over */
extern char __start_computes[], __stop_computes[], __start_alones[], __stop_alones[];

static long long now(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long mine(void) { return now(CLOCK_THREAD_CPUTIME_ID); }

static void stay_on(int cpu) {
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

#define STEPS for (; n > 0; n--) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
__attribute__((noinline, section("computes"))) uint64_t compute(uint64_t x, int n) { STEPS return x; }
__attribute__((noinline, section("alones"))) uint64_t compute_alone(uint64_t x, int n) { STEPS return x; }

__attribute__((noinline)) static void hand_over(void) {
	struct timespec t = {0, 20000};
	if (sleeps) clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0);
	else if (yields) sched_yield();
	else __asm__ volatile("");
}

static void *work(void *arg) {
	int me = (intptr_t)arg;
	unsigned seed = me + 1;
	uint64_t x = seed;
	stay_on(1);
	tids[me] = syscall(SYS_gettid);
	__atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		long long steps = 0, begin = mine();
		int alone = rand_r(&seed) % 4 == 0;
		for (int i = 0; i < ROUNDS; i++) {
			int n = 12000 + rand_r(&seed) % 8000;
			computed[me] = x; /* so that it has to be computed */
			steps += n;
			if (alone) {
				x = compute_alone(x, n);
			} else {
				x = compute(x, n);
				hand_over();
			}
		}
		took[me][alone] += mine() - begin;
		stepped[me][alone] += steps;
	}
	return 0;
}

/* What the kernel has charged the threads. */
static long long used(void) {
	long long sum = 0;
	for (int i = 0; i < threads; i++) {
		char name[64];
		long long ran = 0;
		sprintf(name, "/proc/self/task/%d/schedstat", tids[i]);
		FILE *f = fopen(name, "r");
		if (!f || fscanf(f, "%lld", &ran) != 1) exit(1);
		fclose(f);
		sum += ran;
	}
	return sum;
}

static struct perf_event_attr attr_of(int type, uint64_t config) {
	struct perf_event_attr a;
	memset(&a, 0, sizeof a);
	a.size = sizeof a;
	a.type = type;
	a.config = config;
	return a;
}

static int fd_of;
static char *ring;

static int open_event(struct perf_event_attr *a) {
	int fd = syscall(SYS_perf_event_open, a, -1, 1, -1, 0);
	if (fd < 0) { perror("perf_event_open"); exit(1); }
	return fd;
}

static void open_ring(int type, uint64_t config, uint64_t period) {
	struct perf_event_attr a = attr_of(type, config);
	a.sample_period = period;
	a.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER;
	a.sample_regs_user = 1ULL << PERF_REG_X86_IP;
	a.use_clockid = 1;
	a.clockid = CLOCK_MONOTONIC;
	fd_of = open_event(&a);
	ring = mmap(0, 4096 + RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd_of, 0);
	if (ring == MAP_FAILED) { perror("mmap"); exit(1); }
}

static long in_compute, in_hand;

static void count(uint32_t tid, uint64_t ip) {
	for (int i = 0; i < threads; i++)
		if (tids[i] == (int)tid) {
			if ((char *)ip >= __start_alones && (char *)ip < __stop_alones) return;
			if ((char *)ip >= __start_computes && (char *)ip < __stop_computes) in_compute++;
			else in_hand++;
		}
}

/* Counts what was sampled between two moments. */
static void drain(long long from, long long to) {
	struct { struct perf_event_header head; uint32_t pid, tid; uint64_t time, abi, ip; } s;
	struct perf_event_mmap_page *page = (void *)ring;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
	while (tail < head) {
		memset(&s, 0, sizeof s);
		for (size_t i = 0; i < sizeof s; i++) ((char *)&s)[i] = ring[4096 + (tail + i) % RING];
		if (s.head.type == PERF_RECORD_SAMPLE && s.abi && (long long)s.time >= from && (long long)s.time <= to)
			count(s.tid, s.ip);
		tail += s.head.size;
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

int main(int argc, char **argv) {
	if (argc < 5) return 2;
	sleeps = !strcmp(argv[1], "sleep");
	yields = !strcmp(argv[1], "yield");
	if (argc > 5) threads = atoi(argv[5]);
	if (threads < 1 || threads > MOST) return 2;
	int by_ipi = !strcmp(argv[2], "ipi"), counter = -1;
	double seconds = atof(argv[3]);
	pthread_t t;
	for (int i = 0; i < threads; i++) pthread_create(&t, 0, work, (void *)(intptr_t)i);
	while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) < threads) usleep(1000);
	stay_on(0);
	struct sched_param fifo = {2};
	sched_setscheduler(0, SCHED_FIFO, &fifo);
	if (by_ipi) {
		struct perf_event_attr a = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
		counter = open_event(&a); /* who reads it asks CPU 1 by an interrupt (kernel/events/core.c, perf_event_read) */
		open_ring(PERF_TYPE_TRACEPOINT, atoi(argv[4]), 1);
	} else {
		open_ring(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, INTERVAL);
	}
	memset(took, 0, sizeof took);
	memset(stepped, 0, sizeof stepped);
	unsigned seed = 7;
	long long before = used(), began = now(CLOCK_MONOTONIC), wall;
	for (long n = 0; (wall = now(CLOCK_MONOTONIC) - began) < seconds * 1e9; n++) {
		struct timespec pause = {0, INTERVAL / 2 + rand_r(&seed) % INTERVAL};
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, 0);
		if (by_ipi) {
			uint64_t value;
			drain(1, 0); /* interrupts of others */
			long long from = now(CLOCK_MONOTONIC);
			if (read(counter, &value, 8) != 8) return 1;
			drain(from, now(CLOCK_MONOTONIC));
		} else {
			uint64_t period = INTERVAL * (0.9 + 0.0002 * (rand_r(&seed) % 1000));
			drain(0, 1LL << 62);
			if (n % 20 == 0) ioctl(fd_of, PERF_EVENT_IOC_PERIOD, &period);
		}
	}
	double cpu = used() - before, all = 0, computing = 0;
	for (int i = 0; i < threads; i++) {
		all += took[i][0];
		computing += (double)took[i][1] / stepped[i][1] * stepped[i][0];
	}
	printf("%s, %d threads, by %s: takes %.3f of the CPU time and has %.3f of %ld samples; the threads used %.2f of a CPU\n",
	       argv[1], threads, argv[2], 1 - computing / all, (double)in_hand / (in_compute + in_hand), in_compute + in_hand,
	       cpu / wall);
	fflush(stdout);
	_exit(0);
}
