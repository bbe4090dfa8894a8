//go:build linux

package sampler

import (
	"os"
	"testing"
	"time"

	"goprof/process/procfs"
	"goprof/testdata/ctest"
)

// manyProgram has the given number of sleeping threads, and one that spins.
const manyProgram = `
static void *sleeper(void *x) { for (;;) pause(); }
int main(int argc, char **argv) {
	int n = atoi(argv[1]), made = 0;
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16384);
	for (; made < n; made++) { pthread_t t; if (pthread_create(&t, &a, sleeper, 0)) break; }
	ready();
	say(made);
	for (volatile long i = 0;; i++);
}`

// cpuOf is how long a thread has run, in nanoseconds.
func cpuOf(t *testing.T, s *scan, tid int) int64 {
	t.Helper()
	stat, ok := s.charged(s.byTID[tid])
	if !ok {
		t.Fatal("its CPU time cannot be read")
	}
	return int64(stat.Ran)
}

// scanFor holds ticks at 100 Hz. It counts how often the leader was due, and how long the leader had run. Of each
// tick it counts one interval at most, for no tick pays more. During a long listing the thread may have run for many
// intervals.
func scanFor(s *scan, ticks int) (due int, ran int64) {
	for range ticks {
		before := uint64(0)
		if th := s.byTID[s.proc.PID]; th != nil {
			before = th.last.Ran
		}
		s.begin()
		for th := s.next(); th != nil; th = s.next() {
			if th.tid == s.proc.PID {
				due++
			}
			s.payForSample(th)
		}
		if th := s.byTID[s.proc.PID]; th != nil {
			ran += min(int64(th.last.Ran-before), s.interval)
		}
		time.Sleep(time.Duration(s.interval))
	}
	return due, ran
}

func TestScanOfManyThreads(t *testing.T) {
	p := ctest.Run(t, manyProgram, "10000")
	made := p.Number(t)
	ctest.AwaitAsleep(t, p, 1)
	for _, c := range []struct {
		name string
		fds  int
	}{
		{"descriptors for all", raiseFileLimit()},
		{"descriptors for 100", 100},
		{"no descriptors", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			proc := procfs.OpenDir(p.PID)
			defer proc.Close()
			before := countFDs(t)
			s := newScan(proc, 10*time.Millisecond, c.fds)
			scanFor(s, 60) // by then the sleeping threads are cold
			if len(s.byTID) != made+1 {
				t.Errorf("%d threads of %d", len(s.byTID), made+1)
			}
			if len(s.hot) > 20 {
				t.Errorf("%d threads are hot, one runs", len(s.hot))
			}
			if open := countFDs(t) - before; open > c.fds || (c.fds > 0 && open == 0) {
				t.Errorf("%d descriptors are open, %d allowed", open, c.fds)
			}
			due, ran := 0, int64(0)
			// a busy machine may not let the thread run at each tick
			ctest.Eventually(t, "it has run for 20 ticks", func() bool {
				nowDue, nowRan := scanFor(s, 10)
				due, ran = due+nowDue, ran+nowRan
				return ran >= 20*s.interval
			})
			if int64(2*due)*s.interval < ran {
				t.Errorf("the running thread was due at %d ticks, but ran for %d", due, ran/s.interval)
			}
			if n := testing.AllocsPerRun(30, func() { scanFor(s, 1) }); n != 0 {
				t.Errorf("%v allocations for each tick", n)
			}
			t.Logf("%d ns for each cold thread, listing %v", s.coldCost, time.Duration(s.listCost))
			s.close()
			if open := countFDs(t); open != before {
				t.Errorf("%d descriptors before, %d after", before, open)
			}
		})
	}
}

func countFDs(t *testing.T) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}
