// stops: how long a profiler holds a thread, and how long the thread then waits for a CPU, by the kernel's events. The
// thread itself cannot distinguish the two, because on a busy machine it waits for a CPU anyway.
//
//   stops TID SECONDS NAME   NAME: of the profiler's threads. Prints "STOPS HELD_NS WAIT_NS HELD_NS WAIT_NS ..."
//
// Held is a stop (PTRACE_INTERRUPT), from the switch away from the thread to its wake-up, and the time in which the
// profiler had the thread's CPU right before. The wait is from there until the thread goes on.
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RIGHT_BEFORE_NS = 200000, PAGES = 1024, MOST = 1 << 20, TRACED = 8, MOST_CPUS = 64 };

// Of the trace points sched_switch and sched_waking (include/trace/events/sched.h).
struct sched_switch {
	uint64_t common;
	char prev_comm[16];
	int32_t prev_pid, prev_prio;
	int64_t prev_state;
	char next_comm[16];
	int32_t next_pid, next_prio;
};
struct sched_waking {
	uint64_t common;
	char comm[16];
	int32_t pid, prio, target_cpu;
};

// seen is what matters of an event.
struct seen {
	uint64_t at;
	int cpu;
	enum { STOPS, LOSES, LEAVES, WOKEN, COMES } what;
} *events;
static long count;

static int64_t id_of(const char *name) {
	char path[128], text[32] = "";
	snprintf(path, sizeof path, "/sys/kernel/tracing/events/sched/%s/id", name);
	FILE *f = fopen(path, "r");
	if (f == NULL || fgets(text, sizeof text, f) == NULL) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return atol(text);
}

static int open_event(const char *name, int cpu) {
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof attr, .config = id_of(name),
		.sample_period = 1, .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW, .use_clockid = 1,
		.clockid = CLOCK_MONOTONIC};
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("perf_event_open");
		exit(1);
	}
	return fd;
}

static void add(uint64_t at, int cpu, int what) {
	if (count == MOST) {
		fprintf(stderr, "too many events\n");
		exit(1);
	}
	events[count++] = (struct seen){at, cpu, what};
}

// note keeps what concerns the thread. The profiler leaves a CPU many times; only where it took the thread's does that
// matter, which tell() knows.
static void note(uint64_t at, int cpu, const void *raw, uint32_t size, int tid, const char *name) {
	if (size >= sizeof(struct sched_switch)) {
		const struct sched_switch *s = raw;
		int profiler = strncmp(s->next_comm, name, 15) == 0;
		if (s->prev_pid == tid && (s->prev_state & TRACED))
			add(at, cpu, STOPS);
		else if (s->prev_pid == tid && profiler)
			add(at, cpu, LOSES);
		else if (s->next_pid == tid)
			add(at, cpu, COMES);
		else if (strncmp(s->prev_comm, name, 15) == 0 && !profiler)
			add(at, cpu, LEAVES);
		return;
	}
	const struct sched_waking *w = raw;
	if (w->pid == tid)
		add(at, cpu, WOKEN);
}

static void copy_out(void *to, const char *ring, uint64_t from, size_t n) {
	for (size_t i = 0; i < n; i++)
		((char *)to)[i] = ring[(from + i) % (PAGES * 4096)];
}

static void drain(struct perf_event_mmap_page *page, int cpu, int tid, const char *name) {
	const char *ring = (const char *)page + 4096;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
	while (tail < head) {
		struct perf_event_header h;
		struct {
			uint64_t at;
			uint32_t size;
			char raw[256];
		} __attribute__((packed)) body;
		copy_out(&h, ring, tail, sizeof h);
		if (h.type == PERF_RECORD_SAMPLE && h.size - sizeof h <= sizeof body) {
			char raw[256] __attribute__((aligned(8)));
			copy_out(&body, ring, tail + sizeof h, h.size - sizeof h);
			memcpy(raw, body.raw, sizeof raw);
			note(body.at, cpu, raw, body.size, tid, name);
		} else if (h.type == PERF_RECORD_LOST) {
			fprintf(stderr, "events were lost\n");
			exit(1);
		}
		tail += h.size;
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b) {
	uint64_t x = ((const struct seen *)a)->at, y = ((const struct seen *)b)->at;
	return x < y ? -1 : x > y;
}

// tell goes through all events in their order.
static void tell(void) {
	static uint64_t held[MOST], wait[MOST];
	long stops = 0;
	uint64_t lost_at = 0, taken = 0, came_at = 0, stopped_at = 0, woken_at = 0;
	int lost_on = 0; // of this CPU
	for (struct seen *e = events; e < events + count; e++) {
		switch (e->what) {
		case LOSES:
			if (e->at - came_at > RIGHT_BEFORE_NS)
				taken = 0; // of another time
			lost_at = e->at, lost_on = e->cpu;
			break;
		case LEAVES:
			if (lost_at != 0 && e->cpu == lost_on) {
				taken += e->at - lost_at;
				lost_at = 0;
			}
			break;
		case STOPS:
			stopped_at = e->at, woken_at = 0;
			if (stopped_at - came_at > RIGHT_BEFORE_NS)
				taken = 0;
			break;
		case WOKEN:
			if (stopped_at != 0)
				woken_at = e->at;
			break;
		case COMES:
			if (lost_at != 0)
				taken += e->at - lost_at;
			lost_at = 0;
			if (stopped_at != 0 && woken_at != 0) {
				held[stops] = taken + woken_at - stopped_at, wait[stops++] = e->at - woken_at;
				taken = 0;
			}
			came_at = e->at, stopped_at = woken_at = 0;
		}
	}
	printf("%ld", stops);
	for (long i = 0; i < stops; i++)
		printf(" %lu %lu", (unsigned long)held[i], (unsigned long)wait[i]);
	puts("");
}

int main(int argc, char **argv) {
	if (argc < 4) {
		fprintf(stderr, "usage: stops TID SECONDS NAME\n");
		return 2;
	}
	int tid = atoi(argv[1]), cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus > MOST_CPUS)
		cpus = MOST_CPUS;
	setpriority(PRIO_PROCESS, 0, -20); // or the rings overflow on a busy machine
	events = calloc(MOST, sizeof *events);
	struct perf_event_mmap_page *pages[MOST_CPUS];
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = open_event("sched_switch", cpu), also = open_event("sched_waking", cpu);
		pages[cpu] = mmap(NULL, (PAGES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (pages[cpu] == MAP_FAILED || ioctl(also, PERF_EVENT_IOC_SET_OUTPUT, fd) != 0) {
			perror("ring");
			return 1;
		}
	}
	puts("ready");
	fflush(stdout);
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	double end = now.tv_sec + now.tv_nsec / 1e9 + atof(argv[2]), at = 0;
	do {
		poll(NULL, 0, 20);
		for (int cpu = 0; cpu < cpus; cpu++)
			drain(pages[cpu], cpu, tid, argv[3]);
		clock_gettime(CLOCK_MONOTONIC, &now);
		at = now.tv_sec + now.tv_nsec / 1e9;
	} while (at < end);
	qsort(events, count, sizeof *events, by_time);
	tell();
	return 0;
}
