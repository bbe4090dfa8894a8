//go:build linux

package ctest

// Locked has a thread that takes the lock of the program's address space again and again, and nearly never has a CPU:
// two others want the same CPU, and are more important. The first thread sleeps. After a line on its input the others
// end.
const Locked = `
#include <sched.h>
enum { SIZE = 64 << 20 };
static char *room;
static volatile int ends;
static void *busy(void *x) { while (!ends); return 0; }
static void *maps(void *x) {
	struct sched_param p = {0};
	sched_setscheduler(0, SCHED_IDLE, &p);
	while (!ends) {
		mprotect(room, SIZE, PROT_READ);
		mprotect(room, SIZE, PROT_READ | PROT_WRITE);
	}
	return 0;
}
int main(void) {
	alarm(120);
	room = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(room, SIZE, MADV_NOHUGEPAGE); // many pages take long
	memset(room, 1, SIZE);
	cpu_set_t all, one;
	sched_getaffinity(0, sizeof all, &all);
	int cpu = 0;
	while (!CPU_ISSET(cpu, &all)) cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setaffinity_np(&a, sizeof one, &one);
	pthread_t t;
	pthread_create(&t, &a, maps, 0);
	pthread_create(&t, &a, busy, 0);
	pthread_create(&t, &a, busy, 0);
	ready();
	getchar();
	ends = 1;
	for (;;) pause();
}`
