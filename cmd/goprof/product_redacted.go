//go:build linux

package main

import (
	"sync"

	"goprof/profile"
	"goprof/profile/redact"
	"goprof/sampler/session"
)

// redactedProduct is a product that is given nothing of what may not be told. What goprof says on standard error is
// not the product's.
type redactedProduct struct {
	product
	names *names
}

// names are what several goroutines ask for other names: the recording, and who writes it while it goes on. All
// recordings of a run have one Redactor, and so one lock.
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

// begin tells the product nothing of the machine but its CPUs.
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

// endSoon is passed on, where the product knows it.
func (p *redactedProduct) endSoon() {
	if h, ok := p.product.(interface{ endSoon() }); ok {
		h.endSoon()
	}
}

// redactedSink is given the samples, and passes them on without names. It embeds nothing: what a Sink is told anew must
// be looked at here first.
type redactedSink struct {
	to    session.Sink
	names *names
	// one is held while a sample is passed on: what it becomes is reused, and parts of a recording tell samples at once.
	one sync.Mutex
}

func (s *redactedSink) Begin(at profile.Instant, m profile.Meta) {
	s.names.mu.Lock()
	m = s.names.by.Meta(m)
	s.names.mu.Unlock()
	s.to.Begin(at, m)
}

// BeginPart is partSink's.
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

// Allocated is told those that want it.
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
