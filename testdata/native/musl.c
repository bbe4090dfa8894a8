// A program for musl: compiled C, which has unwind information, on top of musl, which as a rule has none.
// It prints READY and its own stack as the addresses of its functions, and then runs or sleeps, as its argument says.
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

int main(int argc, char **argv) {
    puts("READY");
    fflush(stdout);
    return outer(argc > 1 && strcmp(argv[1], "spin") == 0) + (int)sink;
}
