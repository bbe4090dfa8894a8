// An agent that makes memory of its JVM wait for ever: pages of userfaultfd that nobody fills
// (-agentpath:libsilent.so=OPTION).
//   stack       two native threads, named silent, spin above a hole in their stacks, which they never touch
//   java=FILE   as soon as there is such a file, a thread becomes one of Java's, named silent, and sleeps above such a hole
//   data=FILE   as soon as there is such a file, libjvm.so's variables are gone: who reads them waits, the JVM too
// It prints "silent: none" where there is no userfaultfd.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 1 << 20, HOLE = 1 << 18 };

static int uffd = -1;
static char wanted[4096];

static int silence(uintptr_t start, uintptr_t size) {
	struct uffdio_register r = {.range = {start, size}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	return ioctl(uffd, UFFDIO_REGISTER, &r);
}

static void *spin(void *unused) {
	volatile char hole[HOLE]; // never touched, but for its lower end
	prctl(PR_SET_NAME, "silent");
	hole[0] = 1;
	for (volatile long i = 0;; i++) ;
	return (void *)hole;
}

// sleepInJava becomes a thread of Java's. JavaVM's table of functions begins with three reserved words, DestroyJavaVM,
// AttachCurrentThread, DetachCurrentThread and GetEnv (jni.h, JNIInvokeInterface_).
static void *sleepInJava(void *vm) {
	volatile char hole[HOLE];
	hole[0] = 1;
	int (*attachAsDaemon)(void *, void **, void *) = (*(int (***)(void *, void **, void *))vm)[7];
	struct { int version; const char *name; void *group; } how = {0x00010006, "silent", 0};
	while (access(wanted, F_OK)) usleep(10000);
	void *env;
	if (!attachAsDaemon(vm, &env, &how)) prctl(PR_SET_NAME, "silent");
	for (;;) pause();
	return (void *)hole;
}

static void startSilent(void *(*what)(void *), void *with) {
	char *stack = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t a;
	pthread_t t;
	pthread_attr_init(&a);
	pthread_attr_setstack(&a, stack, SIZE);
	silence((uintptr_t)stack + SIZE - HOLE + 16384, HOLE - 65536);
	pthread_create(&t, &a, what, with);
}

// takeData puts silent memory where libjvm.so's variables were.
static void *takeData(void *unused) {
	uintptr_t from[8], to[8];
	int n = 0;
	while (access(wanted, F_OK)) usleep(10000);
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4500];
	int follows = 0;
	while (maps && n < 8 && fgets(line, sizeof line, maps)) {
		unsigned long start, end;
		char perms[8];
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) != 3) continue;
		int own = strstr(line, "/libjvm.so") != 0;
		int bss = follows && !strchr(line, '/') && !strchr(line, '[');
		if ((own || bss) && !strncmp(perms, "rw", 2)) from[n] = start, to[n++] = end;
		follows = own;
	}
	for (int i = 0; i < n; i++) {
		mmap((void *)from[i], to[i] - from[i], PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		silence(from[i], to[i] - from[i]);
	}
	for (;;) pause();
	return 0;
}

int Agent_OnLoad(void *vm, char *options, void *reserved) {
	struct uffdio_api api = {.api = UFFD_API};
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api)) {
		puts("silent: none");
		fflush(stdout);
		return 0;
	}
	if (!strcmp(options, "stack")) {
		startSilent(spin, 0);
		startSilent(spin, 0);
	} else if (!strncmp(options, "java=", 5)) {
		strncpy(wanted, options + 5, sizeof wanted - 1);
		startSilent(sleepInJava, vm);
	} else if (!strncmp(options, "data=", 5)) {
		pthread_t t;
		strncpy(wanted, options + 5, sizeof wanted - 1);
		pthread_create(&t, 0, takeData, 0);
	}
	return 0;
}
