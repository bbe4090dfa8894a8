//go:build linux

package sampler

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
)

// If pauses cost more than they may, the interval grows.
func TestRateYieldsToTheOverhead(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	const asked, share = time.Millisecond, 1e-6 // no pause is that short
	s, q := New(p.PID, ctest.CPU()), NewQueue(8)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for snap := range q.Looks() {
			q.Done(snap)
		}
	}()
	go func() {
		for s.Stats().Interval == asked {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	got, err := s.Run(ctx, Config{Interval: asked, MaxOverhead: share}, q)
	if err != nil || got.Interval <= asked || got.Attempted+got.Waiting < thriftWindow {
		t.Errorf("interval %v after %d looks, %v", got.Interval, got.Attempted, err)
	}
}

// While a run goes on, the figures of Stats only grow, and agree with each other at each moment.
func TestStatsMeanwhile(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	s, q := New(p.PID, ctest.CPU()), NewQueue(8)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var consumed atomic.Int64
	go func() {
		for snap := range q.Looks() {
			consumed.Add(1)
			q.Done(snap)
		}
	}()
	last := make(chan Stats, 1)
	go func() {
		defer cancel()
		var before Stats
		for range 20 {
			now := s.Stats()
			pending := now.Attempted - now.Taken - now.LostSum()
			if now.Attempted < before.Attempted || now.Wall < before.Wall || pending < 0 || pending > ptrace.MaxPending {
				t.Errorf("%+v after %+v", now, before)
			}
			before = now
		}
		last <- before
	}()
	end, err := s.Run(ctx, Config{Interval: time.Millisecond}, q)
	if before := <-last; err != nil || end.Attempted < before.Attempted || s.Stats().Attempted != end.Attempted {
		t.Errorf("%v: %d at the end, %d before, %d afterwards", err, end.Attempted, before.Attempted, s.Stats().Attempted)
	}
}

// Threads that share a CPU stand still most of the time. A look at a thread without a CPU is no sample. Still each
// thread gets as many samples as its CPU time is worth.
func TestWaitingThreadsAreNoSamples(t *testing.T) {
	p := ctest.Run(t, ctest.Shares, "4", "1", "0")
	one := ctest.AnyCPU(t)
	var tids []int
	for range 4 {
		tid := p.Number(t)
		tids = append(tids, tid)
		if err := unix.SchedSetaffinity(tid, &one); err != nil {
			t.Fatal(err)
		}
	}
	before := make(map[int]int64)
	for _, tid := range tids {
		before[tid] = ctest.Ran(t, p.PID, tid)
	}
	got := session(t, p.PID, Config{Interval: time.Millisecond}, 8, untilSamples(1000))
	if got.Waiting == 0 && !got.Visits {
		t.Error("four threads on one CPU, and none was seen to wait")
	}
	used, usedAll := make(map[int]int64), int64(0)
	for _, tid := range tids {
		used[tid] = ctest.Ran(t, p.PID, tid) - before[tid]
		usedAll += used[tid]
	}
	needTicks(t, &got.Stats)
	for _, tid := range tids {
		n, want := int64(got.byTID[tid]), got.Taken*used[tid]/usedAll
		t.Logf("thread %d: %d of %d samples, %d by CPU time; skipped %d of %d", tid, n, got.Taken, want, got.Skipped,
			got.Ticks)
		// The thread may have had the CPU at all skipped ticks.
		if n < want*6/10-got.Skipped || n > want*14/10 {
			t.Errorf("thread %d has %d of %d samples, %d by CPU time", tid, n, got.Taken, want)
		}
	}
}

func TestHadNoCPU(t *testing.T) {
	const lookAt = 1_000_000
	before := procfs.Schedstat{Ran: 5_000, Waited: 100, Turns: 7}
	for _, c := range []struct {
		what   string
		after  procfs.Schedstat
		now    int64
		waited bool
	}{
		{"ran all the time", procfs.Schedstat{Ran: 6_000, Waited: 100, Turns: 7}, lookAt + 50, false},
		{"lost its CPU to us", procfs.Schedstat{Ran: 6_000, Waited: 140, Turns: 8}, lookAt + 50, false},
		{"had lost it before", procfs.Schedstat{Ran: 5_000, Waited: 100 + 3_000, Turns: 8}, lookAt + 50, true},
		{"lost it, and was collected late", procfs.Schedstat{Ran: 6_000, Waited: 100 + 3_000, Turns: 9}, lookAt + 4_000,
			false},
	} {
		if got := hadNoCPU(before, c.after, c.now, lookAt); got != c.waited {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// A thread saves up for one sample, however long the interval is.
func TestLongIntervals(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	if got := session(t, p.PID, Config{Interval: time.Duration(maxCredit) * 5 / 4}, 8, untilSamples(1)); got.Taken < 1 {
		t.Errorf("%+v", got.Attempted)
	}
}

// held is how many of the owed samples goprof had ticks for. A skipped tick is counted, and its samples are missing.
func held(owed int64, got *Stats) int64 {
	if got.Skipped == 0 {
		return owed
	}
	return owed * got.Ticks / (got.Ticks + got.Skipped)
}

// needTicks skips the rest of a test if the machine gave the sampling thread no CPU at more than a quarter of its
// ticks. The figures mean little then, and goprof promises only to count these ticks.
func needTicks(t testing.TB, got *Stats) {
	t.Helper()
	if got.Skipped > got.Ticks/4 {
		t.Skipf("not judged: there was no CPU for the sampling thread at %d ticks, beside %d that were held", got.Skipped,
			got.Ticks)
	}
}
