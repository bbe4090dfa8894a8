//go:build linux

package sampletest

// ManyProgram has the given number of sleeping threads, and one that spins.
const ManyProgram = `
static void *sleeper(void *x) { for (;;) pause(); }
int main(int argc, char **argv) {
	int n = atoi(argv[1]), made = 0;
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16384);
	for (; made < n; made++) { pthread_t t; if (pthread_create(&t, &a, sleeper, 0)) break; }
	ready();
	say(made);
	for (volatile long i = 0;; i++);
}`

// CrowdProgram has a number of threads that sleep and a number that work. Each fourth of the latter never rests, the
// others work for 1 to 3 of each 8 milliseconds. It prints the tids of the threads that work.
const CrowdProgram = `
static void *sleeper(void *x) { for (;;) pause(); }
static void *worker(void *x) {
	long share = (long)x % 4;
	say(gettid_());
	for (;;) {
		long end = cpu_ns() + (share ? share : 8) * 1000000;
		while (cpu_ns() < end) for (volatile int i = 0; i < 2000; i++);
		if (share) usleep((8 - share) * 1000);
	}
}
int main(int argc, char **argv) {
	int sleeping = atoi(argv[1]), running = atoi(argv[2]);
	pthread_attr_t a;
	pthread_t t;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16384);
	for (int i = 0; i < sleeping; i++) if (pthread_create(&t, &a, sleeper, 0)) { perror("thread"); return 1; }
	ready();
	for (long i = 0; i < running; i++) pthread_create(&t, 0, worker, (void *)i);
	for (;;) pause();
}`
