//go:build linux

package sampler

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
)

// crowdProgram has a number of threads that sleep and a number that work. Each fourth of the latter never rests, the
// others work for 1 to 3 of each 8 milliseconds. It prints the tids of the threads that work.
const crowdProgram = `
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

// TestCrowd: of thousands of threads some run. Their samples follow the CPU time that they use, whether or not there
// are descriptors for all threads. The other threads cost next to nothing. With GOPROF_CROWD=10s the test takes 10 s
// and has 10,000 threads.
func TestCrowd(t *testing.T) {
	proof(t)
	sleeping, samples, length := "2000", int64(1500), time.Duration(0)
	if d, err := time.ParseDuration(os.Getenv("GOPROF_CROWD")); err == nil {
		sleeping, length = "9980", d
	}
	const workers = 20
	p := ctest.Run(t, crowdProgram, sleeping, "20")
	var tids []int
	for range workers {
		tids = append(tids, p.Number(t))
	}
	for _, c := range []struct {
		name string
		fds  int
	}{{"descriptors for all", raiseFileLimit()}, {"ulimit -n 1024", 1024 - reservedFDs}} {
		t.Run(c.name, func(t *testing.T) {
			interval := 10 * time.Millisecond
			if length == 0 {
				interval = 2 * time.Millisecond // so the run ends sooner
			}
			asked := time.Now()
			before := map[int]int64{}
			for _, tid := range tids {
				before[tid] = ctest.Ran(t, p.PID, tid)
			}
			s, q := New(p.PID, ctest.CPU()), NewQueue(64)
			s.fds = c.fds
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if length > 0 {
				time.AfterFunc(length, cancel)
			}
			count, cpu := map[int]int64{}, map[int]int64{}
			consumed := make(chan struct{})
			go func() {
				defer close(consumed)
				n := int64(0)
				for snap := range q.Looks() {
					count[snap.TID]++
					cpu[snap.TID] += snap.CPU
					q.Done(snap)
					if n++; length == 0 && n == samples {
						cancel()
					}
				}
			}()
			got, err := s.Run(ctx, Config{Interval: interval}, q)
			<-consumed
			if err != nil {
				t.Fatal(err)
			}
			used, usedAll := map[int]int64{}, int64(0)
			for _, tid := range tids {
				used[tid] = ctest.Ran(t, p.PID, tid) - before[tid]
				usedAll += used[tid]
			}
			// The threads were asked before and after the run. Besides the run, they can have used all CPUs at most.
			beside := int64(time.Since(asked)-got.Wall) * int64(runtime.NumCPU())
			pass := bareScan(t, p.PID)
			t.Logf("%d samples, %.1f Hz reached; sampling thread %.1f %% of a CPU; a bare loop over all threads' schedstat: "+
				"%v a tick, %.1f %%",
				got.Taken, got.Rate(), 100*got.CPU.Seconds()/got.Wall.Seconds(), pass, 100*pass.Seconds()*got.Rate())
			needTicks(t, &got)
			carried := int64(0)
			for _, tid := range tids {
				carried += cpu[tid]
				want := float64(got.Taken) * float64(used[tid]) / float64(usedAll)
				// A thread that had a CPU while goprof had none misses that many samples.
				if n := float64(count[tid]); n < 0.6*want-20-float64(got.Skipped) || n > 1.5*want+20 {
					t.Errorf("thread %d has %.0f samples, %.0f by CPU time", tid, n, want)
				}
			}
			// A single thread's samples may carry the CPU time of threads that have used little (bill.go).
			if slack := usedAll / 5; carried < usedAll-slack-beside || carried > usedAll+slack {
				t.Errorf("samples carry %v of %v, of which at most %v were before and after", time.Duration(carried),
					time.Duration(usedAll),
					time.Duration(beside))
			}
			if off := got.Times.Process - time.Duration(usedAll); -off > time.Duration(usedAll/20+beside) {
				t.Errorf("%v of %v", got.Times.Process, time.Duration(usedAll))
			}
		})
	}
}

// bareScan is the CPU time that it takes to read schedstat of all threads once. It reads by kept descriptors, as far
// as these suffice.
func bareScan(t *testing.T, pid int) (each time.Duration) {
	ptrace.OnOwnThread(func() {
		d := procfs.OpenDir(pid)
		defer d.Close()
		s := &scan{}
		var fds []int
		d.Threads(make([]byte, 32<<10), func(tid int) {
			if fd, err := d.Open(tid, "schedstat"); err == nil {
				fds = append(fds, fd)
			}
		})
		const passes = 20
		began := s.ownCPUTime()
		for range passes {
			for _, fd := range fds {
				procfs.ParseSchedstat(d.ReadFD(fd))
			}
		}
		each = time.Duration(s.ownCPUTime()-began) / passes
		for _, fd := range fds {
			unix.Close(fd)
		}
	})
	return each
}

// goprof does not read sleeping threads at each tick: the process's clock says that none of them has run.
func TestColdThreadsAreNotRead(t *testing.T) {
	p := ctest.Run(t, crowdProgram, "2000", "0")
	proc := procfs.OpenDir(p.PID)
	defer proc.Close()
	ctest.AwaitAsleep(t, p, 0)
	s := newScan(proc, 10*time.Millisecond, raiseFileLimit())
	defer s.close()
	scanFor(s, 100)
	reads := 0
	for range 50 {
		s.begin()
		for th := s.next(); th != nil; th = s.next() {
			s.payForSample(th)
		}
		reads += s.coldRead
		time.Sleep(10 * time.Millisecond)
	}
	// One read in each tick, and reads of all threads when the process was charged for something else (the kernel's
	// work on its behalf).
	if reads > 50+3*2000 {
		t.Errorf("%d reads of 2000 threads that sleep, in 50 ticks", reads)
	}
}
