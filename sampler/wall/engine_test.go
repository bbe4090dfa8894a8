//go:build linux

package wall

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/stops"
	"goprof/sampler/threads"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// wallSeen is what an Engine has reported about one thread.
type wallSeen struct {
	tallies []*look.Tally
	last    look.Waiting
}

func (s *wallSeen) looks() (n int64) {
	for _, t := range s.tallies {
		looks, _ := t.Count()
		ready, _ := t.CountReady()
		n += looks + ready
	}
	return n
}

// walled looks at a process for a number of rounds.
func walled(t testing.TB, pid int, rounds int64, interval time.Duration, opt Options) (sampler.Stats,
	map[int]*wallSeen) {
	t.Helper()
	w := New(pid, ctest.NeedCPU(t), opt)
	q := sampler.NewQueue(64)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := map[int]*wallSeen{}
	var all sync.WaitGroup
	all.Go(func() {
		for snap := range q.Looks() {
			s := seen[snap.TID]
			if s == nil {
				s = &wallSeen{}
				seen[snap.TID] = s
			}
			s.tallies = append(s.tallies, snap.Tally)
			s.last = snap.Waiting
			q.Done(snap)
		}
	})
	all.Go(func() {
		for range 6_000 {
			if w.Stats().Ticks >= rounds {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
	})
	stats, err := w.Run(ctx, sampler.Config{Interval: interval}, q)
	cancel()
	all.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if stats.Attempted != stats.Taken+stats.LostSum() {
		t.Errorf("attempted %d, taken %d, lost %v", stats.Attempted, stats.Taken, stats.Lost)
	}
	looks := int64(0)
	for _, s := range seen {
		looks += s.looks()
	}
	if looks != stats.Taken {
		t.Errorf("%d looks were taken, the tallies count %d", stats.Taken, looks)
	}
	return stats, seen
}

// cInterrupted has threads in calls that end with EINTR if their thread is stopped, and one thread that spins. For
// each line on stdin it prints how many calls ended so.
const cInterrupted = `
#include <sys/epoll.h>
static long interrupted; static volatile long spun;
static void *epolls(void *p) {
	struct epoll_event e; int fd = epoll_create1(0);
	for (;;) if (epoll_wait(fd, &e, 1, -1) < 0 && errno == EINTR) __atomic_add_fetch(&interrupted, 1, 5);
}
static void *signals(void *p) {
	sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR2);
	for (;;) { struct timespec t = {1000, 0}; if (sigtimedwait(&s, 0, &t) < 0 && errno == EINTR) __atomic_add_fetch(&interrupted, 1, 5); }
}
static void *spins(void *p) { for (;;) spun++; }
int main(void) {
	pthread_t t; char line[16];
	pthread_create(&t, 0, epolls, 0); pthread_create(&t, 0, signals, 0); pthread_create(&t, 0, spins, 0);
	ready();
	while (fgets(line, sizeof line, stdin)) say(interrupted);
}`

// TestWallInterruptsNobody: a program would notice if goprof stopped its blocked threads. This program notices nothing.
func TestWallInterruptsNobody(t *testing.T) {
	p := ctest.Run(t, cInterrupted)
	ask := func() int {
		ctest.AwaitAsleep(t, p, 1) // an interrupted thread has counted that, and waits again
		p.In.Write([]byte("\n"))
		n := p.Number(t)
		// a thread on its way into a call runs, so goprof stops it, and that interrupts the call
		ctest.AwaitAsleep(t, p, 1)
		return n
	}
	ask()
	stats, seen := walled(t, p.PID, 100, 2*time.Millisecond, Options{})
	if n := ask(); n != 0 {
		t.Errorf("%d calls were interrupted", n)
	}
	if stats.Looks.Stopped == 0 || len(seen) != 4 || stats.Looks.Repeated < stats.Attempted/2 {
		t.Errorf("%d threads, %+v", len(seen), stats.Looks)
	}
	if stats, _ := walled(t, p.PID, 100, 2*time.Millisecond, Options{NonBlocking: true}); stats.Looks.Stopped != 0 ||
		stats.Pauses.Count() != 0 || stats.Looks.Running == 0 {
		t.Errorf("stopped although it was not to be: %+v", stats.Looks)
	}
	if stats, _ := walled(t, p.PID, 100, 2*time.Millisecond, Options{WaitingOnly: true}); stats.Looks.Stopped != 0 ||
		stats.Looks.Running == 0 {
		t.Errorf("stopped although only what waits is asked for: %+v", stats.Looks)
	}
	if n := ask(); n != 0 {
		t.Errorf("%d calls were interrupted without a stop", n)
	}
	stats, _ = walled(t, p.PID, 100, 2*time.Millisecond, Options{NativeOnce: true})
	if n := ask(); n == 0 || stats.Looks.AtRest == 0 {
		t.Errorf("%d calls were interrupted by %d stops of threads at rest: this test proves nothing", n, stats.Looks.AtRest)
	}
}

// cWaits has a thread in each kind of system call.
const cWaits = `
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
static int pipes[2], sockets[2];
static void tell(const char *what) { printf("%s %d\n", what, gettid_()); fflush(stdout); }
static void *reads(void *p) { char c; tell("pipe"); read(pipes[0], &c, 1); return 0; }
static void *receives(void *p) { char c; tell("socket"); recv(sockets[0], &c, 1, 0); return 0; }
static void *polls(void *p) { struct pollfd f = {sockets[1], POLLIN, 0}; tell("polled"); poll(&f, 1, -1); return 0; }
static void *selects(void *p) { struct epoll_event e; int fd = epoll_create1(0); tell("selector"); epoll_wait(fd, &e, 1, -1); return 0; }
static void *sleeps(void *p) { struct timespec t = {1000, 0}; tell("sleep"); nanosleep(&t, 0); return 0; }
static void *locks(void *p) { pthread_mutex_t *m = p; tell("futex"); pthread_mutex_lock(m); return 0; }
int main(void) {
	pthread_t t; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pipe(pipes); socketpair(AF_UNIX, SOCK_STREAM, 0, sockets); pthread_mutex_lock(&m);
	ready();
	pthread_create(&t, 0, reads, 0); pthread_create(&t, 0, receives, 0); pthread_create(&t, 0, polls, 0);
	pthread_create(&t, 0, selects, 0); pthread_create(&t, 0, sleeps, 0); pthread_create(&t, 0, locks, &m);
	pause();
}`

// TestWallKnowsTheCall: the kernel reports what a thread waits for.
func TestWallKnowsTheCall(t *testing.T) {
	p := ctest.Run(t, cWaits)
	want := map[string]look.Waiting{
		"pipe": {Call: arch.CallRead, File: look.Pipe}, "socket": {Call: arch.CallReceive, File: look.Socket},
		"polled": {Call: arch.CallPoll, File: look.Socket}, "selector": {Call: arch.CallSelect, File: look.Selector},
		"sleep": {Call: arch.CallSleep}, "futex": {Call: arch.CallFutex},
	}
	tids := map[string]int{}
	for range want {
		var name string
		var tid int
		if _, err := fmt.Sscan(p.Line(t), &name, &tid); err != nil {
			t.Fatal(err)
		}
		tids[name] = tid
		ctest.Eventually(t, name+" waits", func() bool { return ctest.State(p.PID, tid) == 'S' })
	}
	_, seen := walled(t, p.PID, 20, 2*time.Millisecond, Options{During: func(*look.Look) {}})
	for name, want := range want {
		want.State, want.Unstopped = 'S', true
		if got := seen[tids[name]]; got == nil || got.last != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestReadyIsSettled: a thread had been woken and had no CPU for some time. On average, as many of its looks become
// looks at a ready thread as fell into that time, and never more than there are.
func TestReadyIsSettled(t *testing.T) {
	const interval = 10 * time.Millisecond
	r := &wallRun{Run: stops.Run{Ticks: stops.Ticks{Interval: interval, Rng: rand.New(rand.NewPCG(1, 2))}}}
	settle := func(waited time.Duration, turns uint64, looks int64) (ready int64) {
		for range 10_000 {
			th := &watched{still: true, tally: new(look.Tally), last: procfs.Schedstat{Ran: 5, Waited: 7, Turns: 3}}
			th.tally.Add(looks, time.Duration(looks)*interval, 0)
			r.settleReady(th, procfs.Schedstat{Ran: 9, Waited: 7 + uint64(waited), Turns: 3 + turns})
			n, d := th.tally.CountReady()
			if left, _ := th.tally.Count(); left < 1 || d.Round(time.Microsecond) != time.Duration(n)*interval {
				t.Fatalf("%d looks left, %d ready in %v", left, n, d)
			}
			ready += n
		}
		return ready
	}
	for _, c := range []struct {
		name     string
		waited   time.Duration
		turns    uint64
		looks    int64
		low, top int64 // of 10,000
	}{
		{"it had its CPU at once", 0, 1, 10, 0, 0},
		{"a quarter of an interval", interval / 4, 1, 10, 2250, 2750},
		{"three and a half", 7 * interval / 2, 1, 10, 34_500, 35_500},
		{"three turns of half an interval", 3 * interval / 2, 3, 10, 4700, 5300},
		{"longer than it was seen at rest", 100 * interval, 1, 4, 30_000, 30_000},
		{"the first look met it at rest", interval, 1, 1, 0, 0},
	} {
		if got := settle(c.waited, c.turns, c.looks); got < c.low || got > c.top {
			t.Errorf("%s: %d of 10,000, want %d to %d", c.name, got, c.low, c.top)
		}
	}
}

// cIdle starts the given number of threads, which sleep for ever.
const cIdle = `
static void *idles(void *p) { for (;;) pause(); }
int main(int argc, char **argv) {
	pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 65536);
	pthread_t t;
	for (int i = atoi(argv[1]); i > 0; i--) if (pthread_create(&t, &a, idles, 0)) { puts("no more threads"); return 1; }
	ready();
	for (;;) pause();
}`

// wallCosts is how often the test measures the cost of a look.
const wallCosts = 3

// TestWallCost: a look at an idle thread costs little more than reading what the kernel has charged that thread.
// Both are CPU times of the same run. GOPROF_WALL_THREADS is how many threads there are.
func TestWallCost(t *testing.T) {
	sampletest.Proof(t)
	threads, rounds := 1000, int64(20)
	if n := os.Getenv("GOPROF_WALL_THREADS"); n != "" {
		fmt.Sscan(n, &threads)
	}
	p := ctest.Run(t, cIdle, fmt.Sprint(threads))
	ctest.AwaitAsleep(t, p, 0)
	bare := bareReads(t, p.PID, int(rounds), 0)
	paced := bareReads(t, p.PID, int(rounds), 100*time.Millisecond)
	// a hypervisor's time is charged, too
	least, leastFirst := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	looks := int64(0)
	for range wallCosts {
		first, _ := walled(t, p.PID, 2, 100*time.Millisecond, Options{})
		stats, seen := walled(t, p.PID, rounds, 100*time.Millisecond, Options{})
		least, leastFirst, looks = min(least, stats.CPU), min(leastFirst, first.CPU), stats.Attempted-first.Attempted
		t.Logf("%d threads, %d rounds at 10 Hz, %d looks, %d at threads that were not even asked: %v of CPU, two rounds %v",
			threads, stats.Ticks, stats.Attempted, stats.Looks.Quiet, stats.CPU, first.CPU)
		if len(seen) < threads || stats.Looks.Repeated*10 < stats.Attempted*9 {
			t.Errorf("%d threads seen, %+v", len(seen), stats.Looks)
		}
	}
	cost := time.Duration(int64(least-leastFirst) / max(looks, 1))
	again := bareReads(t, p.PID, int(rounds), 0)
	t.Logf("%v of CPU a look, %.1f %% of a CPU at 10 Hz; a bare pread of schedstat %v before and %v after, %v at that "+
		"pace", cost, float64(cost)*float64(threads)*10/1e9*100, bare, again, paced)
	if cost > 5*max(bare, again, paced) {
		t.Errorf("a look at an idle thread costs %v, a bare read %v", cost, max(bare, again, paced))
	}
}

// bareReads returns the CPU time of one pread of a thread's schedstat. It makes as many reads as an Engine, through
// kept descriptors: one after the other, or like an Engine 256 at a time, so that a round takes the interval.
func bareReads(t *testing.T, pid, rounds int, interval time.Duration) (each time.Duration) {
	ptrace.OnOwnThread(func() {
		d := procfs.OpenDir(pid)
		defer d.Close()
		limit := threads.RaiseFileLimit()
		var fds []int
		d.Threads(func(tid int) {
			if fd, err := d.Open(tid, "schedstat"); err == nil && len(fds) < limit {
				fds = append(fds, fd)
			}
		})
		began := sampler.ThreadCPU()
		for range rounds {
			for i, fd := range fds {
				d.ReadFD(fd)
				if interval > 0 && i%perSlot == perSlot-1 {
					time.Sleep(interval * perSlot / time.Duration(len(fds)))
				}
			}
		}
		each = (sampler.ThreadCPU() - began) / time.Duration(max(rounds*len(fds), 1))
		for _, fd := range fds {
			unix.Close(fd)
		}
	})
	return each
}

// quietProgram has many threads that sleep, and one that waits in two places in turn, one deeper than the other.
// When it is told to, this thread goes to the other place, which takes some microseconds. It also starts a thread
// that lives for a moment, too short to be met. It prints a number just before it waits.
const quietProgram = `
#include <unistd.h>
static void *idle(void *x) { if (x) pause(); return 0; }
static void waitHere(void) { char c; say(0); while (read(0, &c, 1) != 1); }
static int waitDeeper(int n) {
	volatile char pad[1024];
	pad[n] = n;
	if (n == 0) waitHere(); else waitDeeper(n - 1);
	return pad[n];
}
int main(int argc, char **argv) {
	for (int i = atoi(argv[1]); i > 0; i--) {
		pthread_t t;
		pthread_attr_t a;
		pthread_attr_init(&a);
		pthread_attr_setstacksize(&a, 65536);
		pthread_create(&t, &a, idle, "stays");
	}
	ready();
	for (;;) {
		pthread_t t;
		waitHere();
		pthread_create(&t, 0, idle, 0);
		pthread_join(t, 0);
		waitDeeper(8);
	}
}`

// TestQuietThreadsAreNotAsked: while no thread runs, goprof reads the file of none. A thread that moves for a moment,
// among hundreds that rest, is noticed each time.
func TestQuietThreadsAreNotAsked(t *testing.T) {
	const threads, moves, interval = 600, 40, 10 * time.Millisecond
	p := ctest.Run(t, quietProgram, strconv.Itoa(threads))
	waits := func() { // a busy machine may not let it run for long
		p.Number(t)
		ctest.Eventually(t, "waits", func() bool { return ctest.State(p.PID, p.PID) == 'S' })
	}
	waits()
	w, q := New(p.PID, ctest.NeedCPU(t), Options{}), sampler.NewQueue(1024)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var places []uint64
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		for snap := range q.Looks() {
			if snap.TID == p.PID {
				places = append(places, snap.SP)
			}
			q.Done(snap)
		}
	}()
	go func() {
		defer cancel()
		ticks := func(n int64) {
			for from := w.Stats().Ticks; w.Stats().Ticks < from+n; {
				time.Sleep(interval)
			}
		}
		for range moves {
			ticks(3) // each tick has one look at the thread
			p.In.Write([]byte("x"))
			waits()
		}
		ticks(3)
	}()
	stats, err := w.Run(ctx, sampler.Config{Interval: interval}, q)
	<-consumed
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d looks, %d repeated, of these %d at threads that were not asked; %d snapshots of the one that moves",
		stats.Attempted, stats.Looks.Repeated, stats.Looks.Quiet, len(places))
	// There may also be looks at the thread on its way, and several in one place.
	often := map[uint64]int{}
	for _, sp := range places {
		often[sp]++
	}
	places = slices.DeleteFunc(places, func(sp uint64) bool { return often[sp] < moves/4 })
	if places = slices.Compact(places); len(places) != moves+1 {
		t.Errorf("it has moved %d times, and was seen in %d places", moves, len(places))
	}
	// On a slow machine a slot lasts several pieces. In all but the first, the threads' files are read (slot in
	// engine.go).
	if stats.Looks.Quiet*2 < stats.Attempted && (os.Getenv("GOPROF_SLOW") == "" || stats.Looks.Quiet == 0) {
		t.Errorf("%d of %d looks were at threads that were not asked", stats.Looks.Quiet, stats.Attempted)
	}
}

// TestGapBeforeTheFirstTick: a run of one tick has a gap, too: the one before that tick.
func TestGapBeforeTheFirstTick(t *testing.T) {
	p := ctest.Run(t, "int main(void) { ready(); for (;;) pause(); }")
	if stats, _ := walled(t, p.PID, 1, 500*time.Millisecond, Options{}); stats.Gap <= 0 {
		t.Errorf("%d ticks, the longest gap is %v", stats.Ticks, stats.Gap)
	}
}
