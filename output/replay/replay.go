// Package replay turns a recording into batches for servers that keep profiles, like the batches that an agent makes
// from a JVM.
//
// It takes a recording.Source, and returns a batch.Batch for each part of the recording in each span of time. All
// errors are from reading. Batches have the names that an agent gives them (resource.Process, batch.Batch.Of).
package replay

import (
	"cmp"
	"strings"
	"time"
	"unicode"

	"goprof/output/recording"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
)

// Options set how a recording becomes batches.
type Options struct {
	Whose resource.Attributes
	Pools bool          // as in batch.GatherOptions
	Every time.Duration // length of a batch, if samples have times
}

// Whose returns which process a recording is of. service is the user's name for the process, empty for none.
func Whose(m *profile.Meta, service string) resource.Attributes {
	p := resource.Process{Service: profile.ProgramName(m.MainClass), PID: m.PID, Host: m.Host}
	if strings.IndexFunc(m.JVM, unicode.IsDigit) == 0 { // goprof's recordings have a version here, others a sentence
		p.Version = m.JVM
	}
	a := p.Attributes()
	if p.Version == "" {
		a.Set(resource.RuntimeAbout, m.JVM)
	}
	a.Set(resource.ServiceName, cmp.Or(service, a.Get(resource.ServiceName), "unknown_service:java"))
	return a
}

// Each hands over the batches of a recording, ordered by time, and returns their number.
func Each(src recording.Source, o Options, to func(*batch.Batch)) (batches int64, err error) {
	info := src.Info()
	r := replayer{Options: o, info: &info, from: info.Meta.Start, to: to}
	r.parts = make([]gathered, max(len(info.Parts), 1))
	if !info.All {
		r.parts = r.parts[:1]
	}
	for i := range r.parts {
		of := info.Of(i)
		r.parts[i] = gathered{gather: batch.NewGatherer(batch.GatherOptions{Pools: o.Pools}), meta: of.Meta,
			event: of.Kind}
	}
	err = src.Each(r.add)
	if err == nil && r.samples == 0 {
		err = recording.Empty(src)
	}
	if err == nil {
		r.flush(info.Meta.Start.Add(info.Meta.Duration))
	}
	return r.batches, err
}

type replayer struct {
	Options
	info    *recording.Info
	parts   []gathered
	from    time.Time
	samples int64
	batches int64
	to      func(*batch.Batch)
}

// gathered is the unfinished batch of a part.
type gathered struct {
	gather *batch.Gatherer
	meta   profile.Meta
	event  profile.EventKind
}

func (r *replayer) add(s *profile.Sample) error {
	r.samples++
	if at := time.Unix(0, s.At.Wall); r.info.Timed && s.At.Wall > 0 && at.Sub(r.from) >= r.Every {
		if r.from.IsZero() || r.isEmpty() {
			r.from = at
		}
		if at.Sub(r.from) >= r.Every {
			r.flush(at)
		}
	}
	r.parts[r.info.Part(s)].gather.Add(s)
	return nil
}

func (r *replayer) isEmpty() bool {
	for i := range r.parts {
		if !r.parts[i].gather.Empty() {
			return false
		}
	}
	return true
}

func (r *replayer) flush(until time.Time) {
	for i := range r.parts {
		if p := &r.parts[i]; !p.gather.Empty() {
			b := p.gather.Take(r.Whose, p.meta, r.from, until)
			b.Of(p.event)
			r.to(b)
			r.batches++
		}
	}
	r.from = until
}
