//go:build linux

package sampletest

import (
	"context"
	"errors"
	"testing"
	"time"

	"goprof/sampler"
)

// Group is a group of either engine.
type Group interface {
	Run(context.Context) error
	Stats() sampler.GroupStats
}

// Member is a member of such a group.
type Member interface {
	sampler.Engine
	Met() int64
	SetShare(float64)
	Share() float64
}

// RunGroup runs a group for the length of a test. It skips the test if the group ends with one
// of these refusals.
func RunGroup(t *testing.T, g Group, refusals ...error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the group ended with %v", err)
		}
	})
	select {
	case err := <-done:
		done <- nil
		for _, refusal := range refusals {
			if errors.Is(err, refusal) {
				t.Skipf("%v here", err) // no CAP_PERFMON, no CAP_BPF, one CPU, or a container
			}
		}
		t.Fatal(err)
	case <-time.After(100 * time.Millisecond):
	}
}

// Joined is a member that is being sampled.
type Joined struct {
	Member
	Samples int64
	CPU     int64
	End     func() sampler.Stats
}

// Join has a member sampled.
func Join(t *testing.T, m Member) *Joined {
	t.Helper()
	j := &Joined{Member: m}
	q := sampler.NewQueue(8)
	ctx, cancel := context.WithCancel(context.Background())
	walked := make(chan struct{})
	go func() {
		defer close(walked)
		for snap := range q.Looks() {
			j.Samples += snap.Samples()
			j.CPU += snap.CPU
			q.Done(snap)
		}
	}()
	result := make(chan sampler.Stats, 1)
	go func() {
		st, err := j.Run(ctx, sampler.Config{}, q)
		if err != nil {
			t.Error(err)
		}
		result <- st
	}()
	j.End = func() sampler.Stats {
		cancel()
		<-walked
		return <-result
	}
	return j
}
