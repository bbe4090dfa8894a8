//go:build linux

package threads

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// cpuOf returns how long a thread has run, in nanoseconds.
func cpuOf(t *testing.T, s *List, tid int) int64 {
	t.Helper()
	stat, ok := s.Charged(s.ByTID[tid])
	if !ok {
		t.Fatal("its CPU time cannot be read")
	}
	return int64(stat.Ran)
}

// scanFor holds ticks at 100 Hz. It counts how often the leader was due, and how long the leader had run. Of each
// tick it counts one interval at most, for no tick pays more. During a long listing the thread may have run for many
// intervals.
func scanFor(s *List, ticks int) (due int, ran int64) {
	for range ticks {
		before := uint64(0)
		if th := s.ByTID[s.Proc.PID]; th != nil {
			before = th.Last.Ran
		}
		s.Begin()
		for th := s.Next(); th != nil; th = s.Next() {
			if th.TID == s.Proc.PID {
				due++
			}
			s.PayForSample(th)
		}
		if th := s.ByTID[s.Proc.PID]; th != nil {
			ran += min(int64(th.Last.Ran-before), s.Interval)
		}
		time.Sleep(time.Duration(s.Interval))
	}
	return due, ran
}

func TestScanOfManyThreads(t *testing.T) {
	many := "10000"
	if sampletest.MayMiss() { // each takes tens of microseconds at each tick
		many = "500"
	}
	p := ctest.Run(t, sampletest.ManyProgram, many)
	made := p.Number(t)
	ctest.AwaitAsleep(t, p, 1)
	for _, c := range []struct {
		name string
		fds  int
	}{
		{"descriptors for all", RaiseFileLimit()},
		{"descriptors for 100", 100},
		{"no descriptors", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			proc := procfs.OpenDir(p.PID)
			defer proc.Close()
			before := countFDs(t)
			s := New(proc, 10*time.Millisecond, c.fds)
			scanFor(s, 60) // by then the sleeping threads are cold
			if len(s.ByTID) != made+1 {
				t.Errorf("%d threads of %d", len(s.ByTID), made+1)
			}
			if len(s.Hot) > 20 {
				t.Errorf("%d threads are hot, one runs", len(s.Hot))
			}
			if open := countFDs(t) - before; open > c.fds || (c.fds > 0 && open == 0) {
				t.Errorf("%d descriptors are open, %d allowed", open, c.fds)
			}
			due, ran := 0, int64(0)
			// a busy machine may not let the thread run at each tick
			ctest.Eventually(t, "it has run for 20 ticks", func() bool {
				nowDue, nowRan := scanFor(s, 10)
				due, ran = due+nowDue, ran+nowRan
				return ran >= 20*s.Interval
			})
			if int64(2*due)*s.Interval < ran {
				t.Errorf("the running thread was due at %d ticks, but ran for %d", due, ran/s.Interval)
			}
			if n := testing.AllocsPerRun(30, func() { scanFor(s, 1) }); n != 0 {
				t.Errorf("%v allocations for each tick", n)
			}
			t.Logf("%d ns for each cold thread, listing %v", s.coldCost, time.Duration(s.listCost))
			s.Close()
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

// goprof does not read sleeping threads at each tick: the process's clock says that none of them has run.
func TestColdThreadsAreNotRead(t *testing.T) {
	p := ctest.Run(t, sampletest.CrowdProgram, "2000", "0")
	proc := procfs.OpenDir(p.PID)
	defer proc.Close()
	ctest.AwaitAsleep(t, p, 0)
	s := New(proc, 10*time.Millisecond, RaiseFileLimit())
	defer s.Close()
	scanFor(s, 100)
	reads := 0
	for range 50 {
		s.Begin()
		for th := s.Next(); th != nil; th = s.Next() {
			s.PayForSample(th)
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

// The samplers of an agent share the descriptors that there are, so two hundred of them keep no more than that.
func TestManySamplersShareDescriptors(t *testing.T) {
	all, one := FilesFor(&sampler.Config{}), FilesFor(&sampler.Config{Pace: new(atomic.Int64)})
	if all == 0 || 200*one > all {
		t.Errorf("200 times %d of %d", one, all)
	}
}
