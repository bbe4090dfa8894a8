//go:build linux

package visit

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// If pauses cost more than they may, the interval grows.
func TestRateYieldsToTheOverhead(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	const asked, share = time.Millisecond, 1e-6 // no pause is that short
	s, q := New(p.PID, ctest.CPU()), sampler.NewQueue(8)
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
	got, err := s.Run(ctx, sampler.Config{Interval: asked, MaxOverhead: share}, q)
	if err != nil || got.Interval <= asked || got.Attempted+got.Waiting < 50 {
		t.Errorf("interval %v after %d looks, %v", got.Interval, got.Attempted, err)
	}
}

// While a run goes on, the figures of Stats only grow, and agree with each other at each moment.
func TestStatsMeanwhile(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	s, q := New(p.PID, ctest.CPU()), sampler.NewQueue(8)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var consumed atomic.Int64
	go func() {
		for snap := range q.Looks() {
			consumed.Add(1)
			q.Done(snap)
		}
	}()
	last := make(chan sampler.Stats, 1)
	go func() {
		defer cancel()
		var before sampler.Stats
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
	end, err := s.Run(ctx, sampler.Config{Interval: time.Millisecond}, q)
	if before := <-last; err != nil || end.Attempted < before.Attempted || s.Stats().Attempted != end.Attempted {
		t.Errorf("%v: %d at the end, %d before, %d afterwards", err, end.Attempted, before.Attempted, s.Stats().Attempted)
	}
}

// Threads that share a CPU wait most of the time. A look at a thread without a CPU is no sample. Still each thread gets
// as many samples as its CPU time is worth.
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
	got := session(t, p.PID, sampler.Config{Interval: sampletest.Interval(time.Millisecond)}, 8,
		sampletest.UntilSamples(1000))
	if got.Waiting == 0 && !got.Visits {
		t.Error("four threads on one CPU, and none was seen to wait")
	}
	used, usedAll := make(map[int]int64), int64(0)
	for _, tid := range tids {
		used[tid] = ctest.Ran(t, p.PID, tid) - before[tid]
		usedAll += used[tid]
	}
	sampletest.NeedTicks(t, &got.Stats)
	for _, tid := range tids {
		n, want := int64(got.ByTID[tid]), got.Taken*used[tid]/usedAll
		t.Logf("thread %d: %d of %d samples, %d by CPU time; skipped %d of %d", tid, n, got.Taken, want, got.Skipped,
			got.Ticks)
		// The thread may have had the CPU at all skipped ticks.
		if n < want*6/10-got.Skipped || n > want*14/10 {
			t.Errorf("thread %d has %d of %d samples, %d by CPU time", tid, n, got.Taken, want)
		}
	}
}

// However long the interval is, a thread gets a sample once its CPU time adds up to one.
func TestLongIntervals(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	if got := session(t, p.PID, sampler.Config{Interval: 5 * time.Second / 4}, 8,
		sampletest.UntilSamples(1)); got.Taken < 1 {
		t.Errorf("%+v", got.Attempted)
	}
}

// held returns how many of the owed samples goprof had ticks for. A skipped tick is counted, and its samples are
// missing.
func held(owed int64, got *sampler.Stats) int64 {
	if got.Skipped == 0 {
		return owed
	}
	return owed * got.Ticks / (got.Ticks + got.Skipped)
}
