//go:build linux

package sampler

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"goprof/process"
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

// startSilent starts it and returns its threads.
func startSilent(t testing.TB, n int, args ...string) (p *program, silent, others []int) {
	t.Helper()
	p = startCommand(t, exec.Command(compile(t, cSilent), append([]string{fmt.Sprint(n)}, args...)...))
	if p.line(t) == "none" {
		t.Skip("userfaultfd is not to be had (it needs root, or vm.unprivileged_userfaultfd=1)")
	}
	for range n {
		silent = append(silent, p.number(t))
	}
	return p, silent, []int{p.number(t), p.number(t)}
}

// standing watches how long threads stand still for a tracer, until the function that it returns is called.
func standing(pid int, tids []int) (longest func() time.Duration) {
	var most time.Duration
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		since := map[int]time.Time{}
		for {
			for _, tid := range tids {
				now := time.Now()
				if threadState(pid, tid) != 't' {
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

// tooLong is when a thread has stood so long that it cannot be the machine's fault. Without a Runner it stands for
// ever.
const tooLong = 10 * StandsAtMost

func TestSilentThread(t *testing.T) {
	p, silent, others := startSilent(t, 1)
	longest := standing(p.pid, append(silent, others...))
	onTracer(t, p.pid, func(tr *Tracer) {
		if _, o := lookPatiently(tr, silent[0], 0); o != Silent {
			t.Fatalf("a look at it: %v", o)
		}
		if got := tr.Silent(); len(got) != 1 || got[0] != silent[0] {
			t.Errorf("silent threads: %v", got)
		}
		stops := tr.Pauses.Count()
		if _, o := lookPatiently(tr, silent[0], 0); o != Silent || tr.Pauses.Count() != stops {
			t.Errorf("the next look: %v, %d stops", o, tr.Pauses.Count()-stops)
		}
		if o := tr.LookUnstopped(silent[0], Hint{}, new(process.Snapshot)); o != Silent {
			t.Errorf("a look without a stop: %v", o)
		}
		for range 20 {
			if snap, o := lookPatiently(tr, others[0], 0); o != Taken || len(snap.Stack) == 0 {
				t.Errorf("a look at another one: %v, %d bytes", o, len(snap.Stack))
			}
		}
		p.in.Write([]byte("\n"))
		p.line(t)
		eventually(t, "its memory answers, so it is looked at again", func() bool {
			snap, o := lookPatiently(tr, silent[0], 0)
			return o == Taken && len(snap.Stack) == unknownStack
		})
	})
	if most := longest(); most > tooLong {
		t.Errorf("a thread stood for %v", most)
	} else {
		t.Logf("the longest that a thread was seen to stand: %v", most)
	}
}

// runFor samples for a while and returns how many snapshots of each thread came.
func runFor(t *testing.T, e Engine, d time.Duration, interval time.Duration) (Stats, map[int]int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	q := NewQueue(64)
	of := map[int]int{}
	var taken sync.WaitGroup
	taken.Go(func() {
		for snap := range q.Snapshots() {
			of[snap.TID]++
			q.Done(snap)
		}
	})
	stats, err := e.Run(ctx, Config{Interval: interval}, q)
	taken.Wait()
	return stats, of, err
}

func TestSilentThreadsInARun(t *testing.T) {
	cpu := needCPU(t)
	for _, c := range []struct {
		name   string
		args   []string
		engine func(pid int) Engine
	}{
		{"cpu", nil, func(pid int) Engine { return New(pid, cpu) }},
		{"wall", nil, func(pid int) Engine { return NewWall(pid, cpu, WallOptions{}) }},
		{"wall, asleep", []string{"sleep"}, func(pid int) Engine { return NewWall(pid, cpu, WallOptions{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, silent, others := startSilent(t, 3, c.args...)
			longest := standing(p.pid, append(silent, others...))
			stats, of, err := runFor(t, c.engine(p.pid), 2*time.Second, 2*time.Millisecond)
			most := longest()
			t.Logf("%d looks, %d taken, lost %v; longest pause %v, seen %v",
				stats.Attempted, stats.Taken, stats.Lost, stats.Pauses.Max(), most)
			if err != nil {
				t.Error(err)
			}
			if stats.Attempted != stats.Taken+stats.LostSum() {
				t.Error("the account does not add up")
			}
			if fmt.Sprint(stats.Silent) != fmt.Sprint(silent) || stats.Lost[Silent] == 0 {
				t.Errorf("silent threads: %v, %d looks; they are %v", stats.Silent, stats.Lost[Silent], silent)
			}
			for _, tid := range silent {
				if of[tid] > 0 {
					t.Errorf("%d samples of a silent thread", of[tid])
				}
			}
			for _, tid := range others {
				if of[tid] < 5 {
					t.Errorf("%d samples of another one", of[tid])
				}
			}
			if most > tooLong || stats.Pauses.Max() > tooLong {
				t.Errorf("a thread stood for %v", max(most, stats.Pauses.Max()))
			}
		})
	}
}

// TestTooManySilentThreads: a run ends, with what it has.
func TestTooManySilentThreads(t *testing.T) {
	p, silent, others := startSilent(t, mostSilent+3)
	longest := standing(p.pid, append(silent, others...))
	stats, _, err := runFor(t, New(p.pid, needCPU(t)), time.Minute, 2*time.Millisecond)
	if !errors.Is(err, ErrSilent) || len(stats.Silent) != mostSilent {
		t.Errorf("%v, silent: %v of %v", err, stats.Silent, silent)
	}
	if most := longest(); most > tooLong {
		t.Errorf("a thread stood for %v", most)
	}
}

// TestSilentThreadsInADump: all are looked at, or named.
func TestSilentThreadsInADump(t *testing.T) {
	p, silent, others := startSilent(t, mostSilent-1)
	longest := standing(p.pid, append(silent, others...))
	var looks []Subject
	for _, tid := range append(append([]int{}, silent...), others...) {
		looks = append(looks, Subject{TID: tid})
	}
	became := map[int]Outcome{}
	onTracer(t, p.pid, func(tr *Tracer) {
		All(tr, time.Second, looks, func(snap *process.Snapshot, o Outcome) { became[snap.TID] = o })
	})
	for _, tid := range silent {
		if o := became[tid]; o != Silent && o != TimedOut { // on a busy machine it may have had no CPU to stop on
			t.Errorf("a silent thread: %v", o)
		}
	}
	for _, tid := range others {
		if o := became[tid]; o != Taken && o != TimedOut {
			t.Errorf("another one: %v", o)
		}
	}
	if most := longest(); most > tooLong {
		t.Errorf("a thread stood for %v", most)
	}
}
