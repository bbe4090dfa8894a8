//go:build linux

package visit

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/sampler/threads"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// TestCrowd: of thousands of threads some run. The numbers of their samples follow the CPU time that they use, whether
// or not there are descriptors for all threads. The other threads cost next to nothing. With GOPROF_CROWD=10s the test
// takes 10 s and has 10,000 threads.
func TestCrowd(t *testing.T) {
	sampletest.Proof(t)
	sleeping, samples, length := "2000", int64(1500), time.Duration(0)
	if d, err := time.ParseDuration(os.Getenv("GOPROF_CROWD")); err == nil {
		sleeping, length = "9980", d
	}
	const workers = 20
	p := ctest.Run(t, sampletest.CrowdProgram, sleeping, "20")
	var tids []int
	for range workers {
		tids = append(tids, p.Number(t))
	}
	for _, c := range []struct {
		name string
		fds  int
	}{{"descriptors for all", threads.RaiseFileLimit()}, {"ulimit -n 1024", 1024 - threads.ReservedFDs}} {
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
			s, q := New(p.PID, ctest.CPU()), sampler.NewQueue(64)
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
			got, err := s.Run(ctx, sampler.Config{Interval: interval}, q)
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
			sampletest.NeedTicks(t, &got)
			carried := int64(0)
			for _, tid := range tids {
				carried += cpu[tid]
				want := float64(got.Taken) * float64(used[tid]) / float64(usedAll)
				// A thread that had a CPU while goprof had none misses that many samples.
				if n := float64(count[tid]); n < 0.6*want-20-float64(got.Skipped) || n > 1.5*want+20 {
					t.Errorf("thread %d has %.0f samples, %.0f by CPU time", tid, n, want)
				}
			}
			// A single thread's samples may carry the CPU time of threads that have used little (threads/bill.go).
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

// bareScan returns the CPU time of reading schedstat of all threads once. It reads by kept descriptors, as far as these
// suffice.
func bareScan(t *testing.T, pid int) (each time.Duration) {
	ptrace.OnOwnThread(func() {
		d := procfs.OpenDir(pid)
		defer d.Close()
		var fds []int
		d.Threads(func(tid int) {
			if fd, err := d.Open(tid, "schedstat"); err == nil {
				fds = append(fds, fd)
			}
		})
		const passes = 20
		began := int64(sampler.ThreadCPU())
		for range passes {
			for _, fd := range fds {
				procfs.ParseSchedstat(d.ReadFD(fd))
			}
		}
		each = time.Duration(int64(sampler.ThreadCPU())-began) / passes
		for _, fd := range fds {
			unix.Close(fd)
		}
	})
	return each
}
