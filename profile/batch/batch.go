package batch

import (
	"time"

	"goprof/profile"
	"goprof/profile/resource"
)

// Batch has the samples of one process in a span of time. Receivers must not change it, because several destinations
// share it.
type Batch struct {
	Resource resource.Attributes // of the process
	Meta     profile.Meta        // mode, engine, interval, weight, goprof's version
	From, To time.Time
	Samples  []Sum
	// Event is the event of the samples. Its Name is empty for CPU time and for wall-clock modes.
	Event profile.EventKind
}

// Looks returns how many looks all samples stand for.
func (b *Batch) Looks() (n int64) {
	for i := range b.Samples {
		n += b.Samples[i].Looks()
	}
	return n
}

// Sum is one stack of one thread, or of one pool of threads, in one state and for one span. It has every look that
// found this stack.
type Sum struct {
	// Thread is the looked-at thread. In the name of a pool, "*" replaces the number, and its numbers are 0.
	Thread  profile.Thread
	Stack   *profile.Stack // leaf first
	State   profile.State
	NoState bool // State is not known
	Wall    bool // of a wall-clock mode
	About   bool // the leaf is what an event was about, and not code
	Link    profile.Link
	Points  []Point
}

// Point is one look, or several looks with the same time.
type Point struct {
	At    int64 // ns since 1970, 0 if the time is not known
	Looks int64
	CPU   time.Duration
	Span  time.Duration // in wall-clock modes: the time that the look stands for
	Bytes int64
}

// Looks returns how many looks the sample stands for.
func (s *Sum) Looks() (n int64) {
	for i := range s.Points {
		n += s.Points[i].Looks
	}
	return n
}

// Value returns the value of a point in weight w.
func (p *Point) Value(w profile.Weight) int64 {
	return w.Of(p.Looks, p.CPU, p.Span, p.Bytes)
}

// Value returns the value of a sample in weight w.
func (s *Sum) Value(w profile.Weight) (n int64) {
	for i := range s.Points {
		n += s.Points[i].Value(w)
	}
	return n
}

// Weight returns what the batch counts besides samples: CPU time, elapsed time, or bytes. It is profile.Samples if no
// sample has any of these.
func (b *Batch) Weight() profile.Weight {
	if b.Event.Name != "" {
		return b.Event.Unit
	}
	want := b.Meta.Weight
	if want == profile.Samples {
		want = profile.CPUTime
		for i := range b.Samples {
			if b.Samples[i].Wall {
				want = profile.WallTime
				break
			}
		}
	}
	for i := range b.Samples {
		if b.Samples[i].Value(want) != 0 {
			return want
		}
	}
	return profile.Samples
}
