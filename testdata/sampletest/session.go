//go:build linux

package sampletest

import (
	"context"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/look"
)

// sampled is the result of a session: its figures, and its samples by thread.
type Result struct {
	sampler.Stats
	Err   error
	ByTID map[int]int
}

// Session samples with an engine until end returns. each is called with every look.
func Session(t *testing.T, e sampler.Engine, cfg sampler.Config, queue int, each func(*look.Look),
	end func(seen *atomic.Int64)) Result {
	t.Helper()
	q := sampler.NewQueue(queue)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got := Result{ByTID: make(map[int]int)}
	var seen atomic.Int64
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		for snap := range q.Looks() {
			each(snap)
			got.ByTID[snap.TID] += int(snap.Samples())
			seen.Add(snap.Samples())
			q.Done(snap)
		}
	}()
	go func() {
		end(&seen)
		cancel()
	}()
	got.Stats, got.Err = e.Run(ctx, cfg, q)
	<-consumed
	if got.Attempted != got.Taken+got.LostSum() {
		t.Errorf("attempted %d, taken %d, lost %v", got.Attempted, got.Taken, got.Lost)
	}
	if got.Taken != seen.Load() {
		t.Errorf("taken %d, but %d came out of the queue", got.Taken, seen.Load())
	}
	return got
}

// UntilSamples ends a session after n samples.
func UntilSamples(n int64) func(*atomic.Int64) {
	return func(seen *atomic.Int64) {
		for range 60000 {
			if seen.Load() >= n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// Chance is how far a count of samples with mean n may be off by chance.
func Chance(n int64) int64 { return int64(4 * math.Sqrt(float64(n))) }

// MayMiss reports whether less than what is due is no fault of an engine. An emulated CPU is away for many intervals on
// end. The kernel makes one sample of them (kernel/events/core.c, perf_swevent_hrtimer).
func MayMiss() bool { return os.Getenv("GOPROF_SLOW") != "" }

// Interval is d, and ten times that on a slow machine: a look takes longer there.
func Interval(d time.Duration) time.Duration {
	if MayMiss() {
		d *= 10
	}
	return d
}

// NeedTicks skips the rest of a test if the machine gave the sampling thread no CPU at more than a quarter of its
// ticks. The figures mean little then, and goprof promises only to count these ticks.
func NeedTicks(t testing.TB, got *sampler.Stats) {
	t.Helper()
	if got.Skipped > got.Ticks/4 {
		t.Skipf("not judged: there was no CPU for the sampling thread at %d ticks, beside %d that were held", got.Skipped,
			got.Ticks)
	}
}

// RunUntil samples until enough says so, for a minute at most. It returns how many looks came of each thread.
func RunUntil(t *testing.T, e sampler.Engine, enough func(sampler.Stats, map[int]int) bool) (sampler.Stats,
	map[int]int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q := sampler.NewQueue(64)
	of := map[int]int{}
	var mu sync.Mutex
	var taken sync.WaitGroup
	taken.Go(func() {
		for snap := range q.Looks() {
			mu.Lock()
			of[snap.TID]++
			mu.Unlock()
			q.Done(snap)
		}
	})
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			stats := e.Stats()
			mu.Lock()
			ends := enough(stats, of)
			mu.Unlock()
			if ends {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	stats, err := e.Run(ctx, sampler.Config{Interval: 2 * time.Millisecond}, q)
	taken.Wait()
	return stats, of, err
}
