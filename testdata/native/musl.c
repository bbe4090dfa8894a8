// A program for musl: compiled C, which has unwind information, on top of musl, which as a rule has none.
// It prints READY and then runs or sleeps, as its argument says: in main, or in a thread whose first function is called as HotSpot's
// is, or otherwise ("thread", "unnamed"; both spin). Where their stack ends they write into the file that is named behind.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noipa)) static void innermost(int spin) {
    if (!spin) {
        struct timespec forever = {1 << 20, 0};
        nanosleep(&forever, NULL);
    }
    for (;;) sink += sink * 3 + 1;
}

__attribute__((noipa)) static int middle(int spin) {
    innermost(spin);
    return sink & 1; // no tail call
}

__attribute__((noipa)) static int outer(int spin) { return middle(spin) + 1; }

__attribute__((noipa)) static void *spin(const char *file) {
    pthread_attr_t attr;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &low, &size);
    FILE *out = fopen(file, "w");
    fprintf(out, "%lu", (unsigned long)low + size);
    fclose(out);
    puts("READY");
    fflush(stdout);
    return (void *)(long)outer(1);
}

__attribute__((noipa)) static void *thread_native_entry(void *file) { return (char *)spin(file) + 1; }
__attribute__((noipa)) static void *other_entry(void *file) { return (char *)spin(file) + 1; }

int main(int argc, char **argv) {
    if (argc > 2 && (!strcmp(argv[1], "thread") || !strcmp(argv[1], "unnamed"))) {
        pthread_t thread;
        pthread_create(&thread, NULL, argv[1][0] == 't' ? thread_native_entry : other_entry, argv[2]);
        pthread_join(thread, NULL);
    }
    puts("READY");
    fflush(stdout);
    return outer(argc > 1 && strcmp(argv[1], "spin") == 0) + (int)sink;
}
