//go:build linux

package ctest

import (
	"fmt"
	"os/exec"
	"testing"
	"time"
)

// cSilent has threads whose stacks have a hole that nobody fills: pages of userfaultfd, for which whoever touches
// them waits. The threads themselves never do. It prints the numbers of N such threads and of two others. "sleep"
// makes the former sleep, else all spin. After a line on its input the holes are filled.
const cSilent = `
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <fcntl.h>
enum { SIZE = 1 << 20, HOLE = 1 << 18 };
static int tids[64], n, sleeps;
static int uffd;
static char *stacks[64];
static void __attribute__((noinline)) work(int i, int sleeper) {
	__atomic_store_n(&tids[i], gettid_(), __ATOMIC_SEQ_CST);
	if (sleeper) for (;;) pause();
	for (volatile long k = 0;; k++);
}
static void *silent(void *p) {
	volatile char hole[HOLE]; // never touched, but for its ends
	hole[0] = 1;
	work((int)(long)p, sleeps);
	return (void *)hole;
}
static void *other(void *p) { work((int)(long)p, 0); return 0; }
int main(int argc, char **argv) {
	n = atoi(argv[1]);
	sleeps = argc > 2 && !strcmp(argv[2], "sleep");
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api)) { puts("none"); fflush(stdout); pause(); }
	for (long i = 0; i < n + 2; i++) {
		pthread_attr_t a;
		pthread_attr_init(&a);
		if (i < n) {
			stacks[i] = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			struct uffdio_register r = {.range = {(uintptr_t)stacks[i] + SIZE - HOLE + 16384, HOLE - 65536},
				.mode = UFFDIO_REGISTER_MODE_MISSING};
			if (ioctl(uffd, UFFDIO_REGISTER, &r)) { puts("none"); fflush(stdout); pause(); }
			pthread_attr_setstack(&a, stacks[i], SIZE);
		}
		pthread_t t;
		pthread_create(&t, &a, i < n ? silent : other, (void *)i);
		while (!__atomic_load_n(&tids[i], __ATOMIC_SEQ_CST)) usleep(1000);
	}
	ready();
	for (int i = 0; i < n + 2; i++) say(tids[i]);
	getchar();
	for (int i = 0; i < n; i++) {
		struct uffdio_zeropage z = {.range = {(uintptr_t)stacks[i] + SIZE - HOLE + 16384, HOLE - 65536}};
		ioctl(uffd, UFFDIO_ZEROPAGE, &z);
	}
	puts("filled"); fflush(stdout);
	for (;;) pause();
}`

// StartSilent starts it and returns its threads.
func StartSilent(t testing.TB, n int, args ...string) (p *Program, silent, others []int) {
	t.Helper()
	p = StartCommand(t, exec.Command(Compile(t, cSilent), append([]string{fmt.Sprint(n)}, args...)...))
	if p.Line(t) == "none" {
		t.Skip("userfaultfd is not to be had (it needs root, or vm.unprivileged_userfaultfd=1)")
	}
	for range n {
		silent = append(silent, p.Number(t))
	}
	return p, silent, []int{p.Number(t), p.Number(t)}
}

// Standing watches how long threads stand still for a tracer, until the function that it returns is called.
func Standing(pid int, tids []int) (longest func() time.Duration) {
	var most time.Duration
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		since := map[int]time.Time{}
		for {
			for _, tid := range tids {
				now := time.Now()
				if State(pid, tid) != 't' {
					delete(since, tid)
				} else if since[tid].IsZero() {
					since[tid] = now
				} else {
					most = max(most, now.Sub(since[tid]))
				}
			}
			select {
			case <-end:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() time.Duration {
		close(end)
		<-ended
		return most
	}
}
