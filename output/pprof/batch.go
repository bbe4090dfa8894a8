package pprof

import (
	"bytes"
	"time"

	"goprof/output/ship"
	"goprof/profile"
	"goprof/profile/naming"
)

// OfBatch writes a batch, compressed. who chooses which facts of a thread become labels. nil takes all.
func OfBatch(b *ship.Batch, who func(profile.Thread) profile.Thread) ([]byte, error) {
	builder := NewBuilder(OptionsOf(b))
	for i := range b.Samples {
		s := &b.Samples[i]
		one := profile.Sample{Thread: s.Thread, Stack: s.Stack, State: s.State, NoState: s.NoState || !s.Wall, Wall: s.Wall}
		if who != nil {
			one.Thread = who(s.Thread)
		}
		for _, p := range s.Points {
			one.Count += p.Looks
			one.CPU += p.CPU
			one.Span += p.Span
			one.Bytes += p.Bytes
		}
		builder.Add(&one)
	}
	m := b.Meta
	m.Start, m.Duration = b.From, max(b.To.Sub(b.From), time.Nanosecond)
	var to bytes.Buffer
	if err := builder.Write(&to, m); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// OptionsOf are the Options for a batch.
func OptionsOf(b *ship.Batch) Options {
	o := Options{Weight: b.Weight(), States: true}
	if b.Event.Name != "" {
		o.What, o.Unit = ship.EventValue(b.Event)
		o.CountOnly = b.Event.Unit == profile.Samples
	}
	return o
}

// PoolOnly replaces a thread by its pool. A server that makes a series of each label's value would otherwise have
// one for each thread that ever lived.
func PoolOnly(t profile.Thread) profile.Thread {
	if t.Virtual {
		return profile.Thread{JavaName: "virtual"}
	}
	return profile.Thread{Name: naming.Pool(t.Name), JavaName: naming.Pool(t.JavaName)}
}
