// idle: sleeping threads, to measure what it costs to find out that they sleep.
//
//   idle THREADS   prints "ready", and ends with its standard input
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *sleeper(void *unused) {
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv) {
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (int n = argc > 1 ? atoi(argv[1]) : 1; n > 1; n--) {
		pthread_t thread;
		if (pthread_create(&thread, &attr, sleeper, NULL) != 0) {
			fprintf(stderr, "no more threads\n");
			return 1;
		}
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
