//go:build linux

package sampler

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// Pauses that cost more than they may make the interval longer.
func TestRateYieldsToTheOverhead(t *testing.T) {
	p := run1(t, cSpin)
	p.number(t)
	const asked, share = time.Millisecond, 1e-6 // no pause is that short
	s, q := New(p.pid, thisCPU()), NewQueue(8)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for snap := range q.Snapshots() {
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
	if err != nil || got.Interval <= asked || got.Attempted < thriftWindow {
		t.Errorf("interval %v after %d looks, %v", got.Interval, got.Attempted, err)
	}
}

// What Stats tells meanwhile only grows, and holds together at each moment.
func TestStatsMeanwhile(t *testing.T) {
	p := run1(t, cSpin)
	p.number(t)
	s, q := New(p.pid, thisCPU()), NewQueue(8)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var consumed atomic.Int64
	go func() {
		for snap := range q.Snapshots() {
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
			if now.Attempted < before.Attempted || now.Wall < before.Wall || pending < 0 || pending > maxPending {
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

// A thread saves up for one sample however long the interval is.
func TestLongIntervals(t *testing.T) {
	p := run1(t, cSpin)
	p.number(t)
	if got := session(t, p.pid, Config{Interval: time.Duration(maxCredit) * 5 / 4}, 8, untilSamples(1)); got.Taken < 1 {
		t.Errorf("%+v", got.Attempted)
	}
}
