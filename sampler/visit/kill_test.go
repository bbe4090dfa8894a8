//go:build linux

package visit

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
)

// unharmedProgram is truth.Unharmed in C: its threads raise and send signals, and make calls that a stop could
// interrupt. It counts in the mapped file that its argument names, as truth.Unharmed does. The second long there counts
// what went wrong. The third counts how often epoll_wait was interrupted (man 7 signal: each stop interrupts it, also
// SIGSTOP's, and no handler is needed).
const unharmedProgram = `
#include <poll.h>
#include <sys/epoll.h>
#include <fcntl.h>
static volatile long *shared;
#define WRONG shared[1]
#define count(slot) (shared[8 * (slot)]++)
static char *page;
static __thread volatile long faults;
static void on_segv(int sig, siginfo_t *si, void *ctx) {
	faults++;
	if (si->si_addr != page || si->si_code != SEGV_ACCERR) WRONG++;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
static void *faulting(void *x) {
	for (;;) {
		long before = faults;
		mprotect(page, 4096, PROT_NONE);
		*(volatile char *)page = 1;
		if (faults != before + 1) WRONG++;
		count(1);
	}
}
static volatile long got;
static pthread_t receiver;
static void on_sig(int sig, siginfo_t *si, void *ctx) {
	if (si->si_code != SI_QUEUE || si->si_value.sival_int != (int)got) WRONG++;
	got++;
	count(2);
}
static void *receiving(void *x) { for (;;) for (volatile int i = 0; i < 1000; i++); }
static void *sending(void *x) {
	for (long i = 0;; i++) {
		union sigval v = { .sival_int = (int)i };
		while (pthread_sigqueue(receiver, SIGRTMIN + 3, v) != 0) usleep(100);
		while (got < i - 50) usleep(20);
		count(3);
	}
}
static int there[2], back[2];
static void *writing(void *x) {
	for (long i = 0;; i++) {
		long r;
		if (write(there[1], &i, sizeof i) != sizeof i || read(back[0], &r, sizeof r) != sizeof r || r != i) WRONG++;
		count(4);
	}
}
static void *polling(void *x) {
	int e = epoll_create1(0);
	struct epoll_event want = { .events = EPOLLIN };
	epoll_ctl(e, EPOLL_CTL_ADD, there[0], &want);
	for (;;) {
		long r;
		struct pollfd p = { there[0], POLLIN, 0 };
		struct epoll_event event;
		if (shared[8 * 5] % 2 == 0) {
			if (poll(&p, 1, -1) != 1) WRONG++;
		} else {
			while (epoll_wait(e, &event, 1, -1) != 1) { if (errno == EINTR) shared[2]++; else WRONG++; }
		}
		if (read(there[0], &r, sizeof r) != sizeof r || write(back[1], &r, sizeof r) != sizeof r) WRONG++;
		count(5);
	}
}
static void *sleeping(void *x) {
	for (;;) {
		struct timespec ms = { 0, 300000 };
		if (nanosleep(&ms, 0) != 0) WRONG++;
		count(6);
	}
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int whose;
static void *turning(void *x) {
	long me = (long)x;
	for (;;) {
		pthread_mutex_lock(&mutex);
		while (whose != me) if (pthread_cond_wait(&turn, &mutex) != 0) WRONG++;
		whose = !me;
		pthread_cond_broadcast(&turn);
		pthread_mutex_unlock(&mutex);
		count(7 + me);
	}
}
int main(int argc, char **argv) {
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	ftruncate(fd, 4096);
	shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction segv = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO }, sig = { .sa_sigaction = on_sig, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigaction(SIGSEGV, &segv, 0);
	sigaction(SIGRTMIN + 3, &sig, 0);
	pipe(there); pipe(back);
	pthread_t t;
	pthread_create(&t, 0, faulting, 0);
	pthread_create(&receiver, 0, receiving, 0);
	pthread_create(&t, 0, sending, 0);
	pthread_create(&t, 0, writing, 0);
	pthread_create(&t, 0, polling, 0);
	pthread_create(&t, 0, sleeping, 0);
	pthread_create(&t, 0, turning, (void *)0);
	pthread_create(&t, 0, turning, (void *)1);
	shared[0] = 8;
	ready();
	for (;;) pause();
}`

// unharmed is a program that must not notice how goprof ends.
type unharmed struct {
	name   string
	pid    int
	counts string       // the file in which it counts
	check  func() error // asks the program what went wrong
}

// counted returns how often each thread of the program has done its work.
func (u *unharmed) counted(t *testing.T) []int64 {
	t.Helper()
	b, err := os.ReadFile(u.counts)
	if err != nil || len(b) < 4096 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	counts := make([]int64, binary.NativeEndian.Uint64(b))
	for i := range counts {
		counts[i] = int64(binary.NativeEndian.Uint64(b[64*(i+1):]))
	}
	return counts
}

func (u *unharmed) isFree(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(u.pid) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	d := procfs.OpenDir(u.pid)
	defer d.Close()
	for _, e := range entries {
		tid, _ := strconv.Atoi(e.Name())
		ctest.Eventually(t, u.name+": a thread is let go", func() bool {
			state, tracer := d.Status(tid)
			return state != 't' && state != 'T' && tracer == 0
		})
	}
}

func (u *unharmed) works(t *testing.T) {
	t.Helper()
	before := u.counted(t)
	ctest.Eventually(t, u.name+": all its threads go on", func() bool {
		for i, n := range u.counted(t) {
			if n == before[i] {
				return false
			}
		}
		return true
	})
}

// TestEndsOfGoprof ends processes that take samples, at random moments and one after the other, in each way that ends a
// process. No thread is left stopped, and the programs notice nothing. In full:
//
//	GOPROF_KILLS=10000 go test ./sampler/visit -run TestEndsOfGoprof -v -timeout 4h
func TestEndsOfGoprof(t *testing.T) {
	kills := ctest.Rounds(100)
	if n, err := strconv.Atoi(os.Getenv("GOPROF_KILLS")); err == nil {
		kills = n
	}
	targets := []unharmed{unharmedC(t)}
	for _, jdk := range jvmtest.JDKs(t) {
		targets = append(targets, unharmedJVM(t, jdk))
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	by := map[string]int{}
	began := make([][]int64, len(targets))
	for i := range targets {
		began[i] = targets[i].counted(t)
	}
	for n := range kills {
		u := &targets[n%len(targets)]
		how := []string{"SIGKILL", "SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "SIGQUIT", "SIGTSTP", "panic"}[rng.IntN(8)]
		by[how]++
		end(t, u, how, rng)
		u.isFree(t)
		if n%(20*len(targets)) < len(targets) || n >= kills-len(targets) {
			u.works(t)
			if err := u.check(); err != nil {
				t.Fatalf("%s after %d ends, the last by %s: %v", u.name, n+1, how, err)
			}
		}
		if (n+1)%1000 == 0 {
			t.Logf("%d ends so far: %v", n+1, by)
		}
	}
	t.Logf("%d ends: %v", kills, by)
	for i := range targets {
		done := int64(0)
		for slot, n := range targets[i].counted(t) {
			done += n - began[i][slot]
		}
		t.Logf("%s: did %d pieces of work meanwhile", targets[i].name, done)
	}
}

// end starts a process that takes samples of a program, and ends that process.
func end(t *testing.T, u *unharmed, how string, rng *rand.Rand) {
	t.Helper()
	wait := time.Duration(rng.IntN(3000)) * time.Microsecond
	env := []string{"SAMPLER_INTERVAL=50us", "GOTRACEBACK=none"}
	if how == "panic" {
		env = append(env, "SAMPLER_PANIC="+strconv.Itoa(int(wait.Microseconds())))
	}
	h := startHelper(t, u.pid, env...)
	switch how {
	case "panic":
	case "SIGTSTP":
		time.Sleep(wait)
		h.Process.Signal(unix.SIGTSTP)
		ctest.Eventually(t, "goprof is stopped", func() bool { return ctest.State(h.PID, h.PID) == 'T' })
		u.isFree(t)
		h.Process.Kill()
	default:
		time.Sleep(wait)
		h.Process.Signal(map[string]unix.Signal{"SIGKILL": unix.SIGKILL, "SIGTERM": unix.SIGTERM,
			"SIGQUIT": unix.SIGQUIT}[how])
	}
	h.Wait()
}

func unharmedC(t *testing.T) unharmed {
	file := filepath.Join(t.TempDir(), "counts")
	p := ctest.Run(t, unharmedProgram, file)
	interrupted := 0
	t.Cleanup(func() { t.Logf("C: epoll_wait was interrupted %d times", interrupted) })
	return unharmed{"C", p.PID, file, func() error {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if n := binary.NativeEndian.Uint64(b[8:]); n != 0 {
			return &wrongError{int(n)}
		}
		interrupted = int(binary.NativeEndian.Uint64(b[16:]))
		return nil
	}}
}

type wrongError struct{ n int }

func (e *wrongError) Error() string { return strconv.Itoa(e.n) + " signals lost or calls interrupted" }

func unharmedJVM(t *testing.T, jdk jvmtest.JDK) unharmed {
	file := filepath.Join(t.TempDir(), "counts-"+jdk.String())
	jvm := jvmtest.Start(t, jdk, "truth.Unharmed", "-Xmx64m", "--", file)
	return unharmed{jdk.String(), jvm.PID, file, func() error { jvm.Command("check"); return nil }}
}
