/*
 * A signal handler for truth.JniSignals, as an application's native library installs one: it stays in
 * C until a test has looked at it, and tells in a mapped file that it is there. SIGPROF is not one of
 * HotSpot's own.
 */
#define _GNU_SOURCE
#include <jni.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#define NOINLINE static __attribute__((noinline, noclone))

/* The mapped file: how many handlers are running, how many have been run, and how many of them
 * on the alternate stack. The last number is the test's: a handler returns when it changes. */
static volatile uint32_t *state;
enum { INSIDE, HANDLED, ALTERNATE, LOOKS };

static stack_t alternate; /* size 0: handlers run on the thread's own stack */

NOINLINE int handle(int turns) {
    volatile int sum = 0;
    uint32_t looks = state[LOOKS];
    struct timespec now;
    for (int i = 0; i < turns && state[LOOKS] == looks; i++) {
        for (int j = 0; j < 300; j++) {
            sum += j;
        }
        clock_gettime(CLOCK_MONOTONIC, &now); /* in the vdso, which has unwind information of its own */
    }
    return sum;
}

NOINLINE void onSignal(int number, siginfo_t *info, void *context) {
    ucontext_t *interrupted = context;
    state[INSIDE]++;
    /* A thread gets its alternate stack by its first signal: the kernel sets the one that stands in the
     * context when the handler returns (restore_altstack in rt_sigreturn). */
    if (alternate.ss_size != 0 && interrupted->uc_stack.ss_size == 0) {
        interrupted->uc_stack = alternate;
    }
    uintptr_t here = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)alternate.ss_sp;
    if (here < alternate.ss_size) {
        state[ALTERNATE]++;
    }
    handle(100000); /* no longer, should the test have gone */
    state[HANDLED]++;
    state[INSIDE]--;
}

JNIEXPORT void JNICALL Java_truth_JniSignals_install(JNIEnv *env, jclass class, jobject buffer, jboolean onAlternate) {
    jclass wrong = (*env)->FindClass(env, "java/lang/IllegalStateException");
    state = (*env)->GetDirectBufferAddress(env, buffer);
    if (onAlternate) {
        alternate.ss_size = 256 << 10;
        alternate.ss_sp = mmap(NULL, alternate.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (alternate.ss_sp == MAP_FAILED) {
            (*env)->ThrowNew(env, wrong, "no memory for an alternate stack");
            return;
        }
    }
    /* SA_NODEFER: a handler can be interrupted by the next one. */
    struct sigaction action = {.sa_sigaction = onSignal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};
    if (onAlternate) {
        action.sa_flags |= SA_ONSTACK;
    }
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGPROF, &action, NULL) != 0) {
        (*env)->ThrowNew(env, wrong, "no handler for SIGPROF");
    }
}
