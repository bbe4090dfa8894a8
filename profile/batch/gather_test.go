package batch

import (
	"slices"
	"testing"
	"time"

	"goprof/profile"
)

var (
	outer = &profile.Func{Name: "a.B.outer"}
	inner = &profile.Func{Name: "a.B.inner"}
)

func look(at int64, name string, fns ...*profile.Func) *profile.Sample {
	s := &profile.Sample{At: profile.Instant{Wall: at}, CPU: time.Millisecond, Stack: &profile.Stack{},
		Thread: profile.Thread{TID: len(name), JavaName: name}}
	for _, fn := range fns {
		s.Stack.Frames = append(s.Stack.Frames, profile.Frame{Func: fn, Kind: profile.C2})
	}
	return s
}

// TestGather: all looks at one stack of one thread are one sample, with a point for each look, ordered by time.
func TestGather(t *testing.T) {
	g := NewGatherer(GatherOptions{})
	again := look(20, "main", inner, outer)
	for _, s := range []*profile.Sample{again, look(10, "main", inner, outer), look(15, "main", outer),
		look(12, "other", inner, outer)} {
		g.Add(s)
	}
	again.Stack.Frames[0].Func = outer // the caller reuses its stack
	b := g.Take(nil, profile.Meta{}, time.Unix(0, 10), time.Unix(0, 20))
	if len(b.Samples) != 3 || b.Looks() != 4 || !g.Empty() {
		t.Fatalf("%+v", b)
	}
	first := b.Samples[0]
	if len(first.Points) != 2 || first.Points[0].At != 10 || first.Stack.Frames[0].Func != inner {
		t.Errorf("%+v", first)
	}
	if b.Weight() != profile.CPUTime || first.Value(profile.CPUTime) != int64(2*time.Millisecond) {
		t.Errorf("%v %d", b.Weight(), first.Value(profile.CPUTime))
	}
}

// TestGatherPools: threads whose names only differ by a number are one.
func TestGatherPools(t *testing.T) {
	g := NewGatherer(GatherOptions{Pools: true})
	for i, name := range []string{"pool-1-thread-1", "pool-1-thread-2", "pool-2-thread-1"} {
		g.Add(look(int64(i), name, inner))
	}
	b := g.Take(nil, profile.Meta{}, time.Time{}, time.Time{})
	if len(b.Samples) != 2 || b.Samples[0].Thread.JavaName != "pool-1-thread-*" || b.Samples[0].Thread.TID != 0 {
		t.Errorf("%+v", b.Samples)
	}
}

// TestGatherBounds: looks without room are counted under a stack that says so. No look is lost.
func TestGatherBounds(t *testing.T) {
	for name, o := range map[string]GatherOptions{
		"samples": {MaxSamples: 3}, "frames": {MaxFrames: 3}, "points": {MaxPoints: 3},
	} {
		g := NewGatherer(o)
		for i := range 1000 {
			g.Add(look(int64(i+1), "main", &profile.Func{Name: "x"}))
			g.Add(look(int64(i+1), "main", inner))
		}
		b := g.Take(nil, profile.Meta{}, time.Time{}, time.Time{})
		if b.Looks() != 2000 {
			t.Errorf("%s: %d looks", name, b.Looks())
		}
		full := slices.ContainsFunc(b.Samples, func(s Sum) bool { return s.Stack == fullStack && len(s.Points) > 0 })
		if name != "points" && (len(b.Samples) > 4 || !full) {
			t.Errorf("%s: %d samples, one of them for looks without room: %v", name, len(b.Samples), full)
		}
	}
}

// TestGatherLinks: each span of a stack is a sample, and the spans share the stack.
func TestGatherLinks(t *testing.T) {
	g := NewGatherer(GatherOptions{MaxFrames: 4})
	for i := range 10 {
		s := look(int64(i+1), "main", inner, outer)
		s.Link.Span[0] = byte(i % 5) // 0 is none
		g.Add(s)
	}
	b := g.Take(nil, profile.Meta{}, time.Time{}, time.Time{})
	if b.Looks() != 10 {
		t.Fatalf("%d looks", b.Looks())
	}
	for i := range b.Samples {
		if s := &b.Samples[i]; s.Looks() != 2 {
			t.Errorf("%d: %+v", i, s)
		}
	}
}
