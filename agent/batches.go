//go:build linux

package agent

import (
	"sync"
	"time"

	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
)

// batches is a recording's Sink. It gathers samples until the agent cuts a batch.
type batches struct {
	mu      sync.Mutex
	gather  *batch.Gatherer
	span    *countedTime
	meta    profile.Meta
	whose   resource.Attributes
	event   profile.EventKind // the event that is sampled; without a Name before the first sample, and in modes
	began   time.Time
	samples int64 // in all batches
	broken  int64 // samples whose stack does not reach its root
	begun   time.Time
	rest    unsampled
	rests   bool // rest is added; from the first cut in the counted time on
}

func newBatches(pools bool, of *countedTime) *batches {
	return &batches{span: of, gather: batch.NewGatherer(batch.GatherOptions{Pools: pools})}
}

func (b *batches) belongTo(whose resource.Attributes) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.whose = whose
}

// cut makes a batch of the samples since the last cut, or nil if there are none. interval is the CPU time that each
// sample stood for. used is the CPU time of the process since the recording began, or 0 if that is not known. last says
// that no further sample comes.
func (b *batches) cut(now time.Time, interval, used time.Duration, last bool) *batch.Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := b.began
	b.began = now
	b.addRest(now, used, last)
	from, now = b.span.within(from, now)
	if b.gather.Empty() {
		return nil
	}
	m := b.meta
	m.Interval, m.Start, m.Duration = interval, from, now.Sub(from)
	batch := b.gather.Take(b.whose, m, from, now)
	batch.Of(b.event)
	return batch
}

// addRest adds the CPU time that no sample covers.
func (b *batches) addRest(now time.Time, used time.Duration, last bool) {
	if used == 0 || !b.span.has(now.UnixNano()) {
		return
	}
	if !b.rests && !b.span.has(b.begun.UnixNano()) {
		b.rest.begin(used)
	}
	b.rests = true
	if due := b.rest.take(used, last); due > 0 {
		b.gather.Add(&profile.Sample{Stack: notSampled, CPU: due, TimeOnly: true, NoState: true})
	}
}

// counts returns the numbers of samples so far.
func (b *batches) counts() (samples, broken int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.samples, b.broken
}

func (b *batches) Begin(at profile.Instant, m profile.Meta) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.meta, b.began = m, time.Now()
	b.begun = b.began
}

func (b *batches) Sample(s *profile.Sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.span.has(s.At.Wall) {
		return // another agent counts them
	}
	if s.Event != nil {
		b.event = *s.Event
	}
	b.gather.Add(s)
	b.rest.sent += s.CPU
	b.samples += s.Looks()
	if s.Stack != nil && s.Stack.Truncated != profile.Whole {
		b.broken += s.Looks()
	}
}

func (b *batches) ThreadStart(profile.Instant, profile.Thread) {}
func (b *batches) ThreadEnd(profile.Instant, profile.Thread)   {}
func (b *batches) Tick(profile.Instant, int)                   {}
