//go:build linux

package main

import (
	"sync"

	"goprof/profile"
	"goprof/profile/redact"
	"goprof/session"
)

// redactedProduct passes on to a product what may be shown, and nothing else. It does not cover what goprof says on
// standard error.
type redactedProduct struct {
	product
	names *names
}

// names guards a Redactor with a lock. Several goroutines ask it for names: those that record, and those that write
// meanwhile. All recordings of a run have one Redactor, and so one lock.
type names struct {
	mu    *sync.Mutex
	by    *redact.Redactor
	known *redact.Functions
}

func newNames(by *redact.Redactor, lock *sync.Mutex) *names {
	return &names{mu: lock, by: by, known: by.Functions()}
}

// soFar is a recording without names.
func (n *names) soFar(r *soFar) *soFar {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := &soFar{profile: r.profile, summary: n.by.Summary(r.summary), at: r.at}
	if r.profile != nil {
		out.profile = r.profile.Renamed(n.known.Of)
		out.profile.Meta = n.by.Meta(r.profile.Meta)
	}
	return out
}

// begin tells the product only the CPUs of the machine.
func (p *redactedProduct) begin(about session.Facts, stop func()) session.Sink {
	p.names.mu.Lock()
	defer p.names.mu.Unlock()
	about.VMName, about.VMInfo = p.names.by.Version(about.VMName), p.names.by.Version(about.VMInfo)
	about.OS, about.CPU = "", ""
	sink := p.product.begin(about, stop)
	if sink == nil {
		return nil
	}
	return &redactedSink{to: sink, names: p.names}
}

func (p *redactedProduct) soFar(r *soFar) (string, error)  { return p.product.soFar(p.names.soFar(r)) }
func (p *redactedProduct) finish(r *soFar) (string, error) { return p.product.finish(p.names.soFar(r)) }

// endSoon is passed on to a product that has it.
func (p *redactedProduct) endSoon() {
	if h, ok := p.product.(interface{ endSoon() }); ok {
		h.endSoon()
	}
}

// redactedSink passes samples on without names. It embeds no Sink: a method that Sink gets later must be written here
// by hand, with thought for its names.
type redactedSink struct {
	to    session.Sink
	names *names
	// one is held while a sample is passed on: the redacted sample is reused, and parts of a recording deliver samples
	// at the same time.
	one sync.Mutex
}

func (s *redactedSink) Begin(at profile.Instant, m profile.Meta) {
	s.names.mu.Lock()
	m = s.names.by.Meta(m)
	s.names.mu.Unlock()
	s.to.Begin(at, m)
}

// BeginPart is partSink.
func (s *redactedSink) BeginPart(at profile.Instant, m profile.Meta) {
	s.names.mu.Lock()
	m = s.names.by.Meta(m)
	s.names.mu.Unlock()
	if to, ok := s.to.(partSink); ok {
		to.BeginPart(at, m)
	}
}

func (s *redactedSink) Sample(sample *profile.Sample) {
	s.one.Lock()
	defer s.one.Unlock()
	s.names.mu.Lock()
	out := s.names.by.Sample(sample, s.names.known)
	s.names.mu.Unlock()
	s.to.Sample(&out)
}

func (s *redactedSink) ThreadStart(at profile.Instant, t profile.Thread) {
	s.to.ThreadStart(at, s.thread(t))
}

func (s *redactedSink) ThreadEnd(at profile.Instant, t profile.Thread) {
	s.to.ThreadEnd(at, s.thread(t))
}

func (s *redactedSink) Tick(at profile.Instant, javaThreads int) { s.to.Tick(at, javaThreads) }

// Allocated is passed on to Sinks that have it.
func (s *redactedSink) Allocated(at profile.Instant, t profile.Thread, bytes uint64) {
	if to, ok := s.to.(interface {
		Allocated(profile.Instant, profile.Thread, uint64)
	}); ok {
		to.Allocated(at, s.thread(t), bytes)
	}
}

func (s *redactedSink) thread(t profile.Thread) profile.Thread {
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	return s.names.by.Thread(t)
}
