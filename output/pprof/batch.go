package pprof

import (
	"bytes"
	"time"

	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/naming"
)

// OfBatch writes a compressed batch. labels chooses which facts of thread and span become labels. nil chooses all.
func OfBatch(b *batch.Batch, labels func(*profile.Sample)) ([]byte, error) {
	builder := NewBuilder(OptionsOf(b))
	for i := range b.Samples {
		s := &b.Samples[i]
		one := profile.Sample{Thread: s.Thread, Stack: s.Stack, State: s.State, NoState: s.NoState || !s.Wall, Wall: s.Wall,
			Link: s.Link}
		if labels != nil {
			labels(&one)
		}
		one.TimeOnly = s.Looks() == 0
		for _, p := range s.Points {
			one.Count += p.Looks
			one.CPU += p.CPU
			one.Span += p.Span
			one.Bytes += p.Bytes
		}
		if err := builder.Add(&one); err != nil {
			return nil, err
		}
	}
	m := b.Meta
	m.Start, m.Duration = b.From, max(b.To.Sub(b.From), time.Nanosecond)
	var to bytes.Buffer
	if err := builder.Write(&to, m); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// OptionsOf returns the Options for a batch.
func OptionsOf(b *batch.Batch) Options {
	o := Options{Weight: b.Weight(), States: true}
	if b.Event.Name != "" {
		o.What, o.Unit = batch.EventValue(b.Event)
		o.CountOnly = b.Event.Unit == profile.Samples
	}
	return o
}

// PoolOnly replaces a thread by its pool, and removes the trace's id. Otherwise a server that makes a series for each
// value of a label would have one for each thread that ever lived, and for each trace. Pyroscope is such a server. It
// makes no series for the span's id (pkg/pprof: GroupSamplesWithoutLabels of SpanIDLabelName), so the span's id stays,
// and its users find the samples of a span by it.
func PoolOnly(s *profile.Sample) {
	s.Link.Trace = [16]byte{}
	if t := s.Thread; t.Virtual {
		s.Thread = profile.Thread{JavaName: "virtual"}
	} else {
		s.Thread = profile.Thread{Name: naming.Pool(t.Name), JavaName: naming.Pool(t.JavaName)}
	}
}
