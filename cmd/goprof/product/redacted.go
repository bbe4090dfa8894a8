//go:build linux

package product

import (
	"sync"

	"goprof/profile"
	"goprof/profile/redact"
	"goprof/session"
)

// redactedProduct passes only redacted data to a product. It does not redact goprof's messages on standard error.
type redactedProduct struct {
	Product
	names *names
}

// JFROf returns the JFR file behind a product, or nil. Facts that are written directly to that file are not redacted.
func JFROf(p Product) *JFR {
	if r, ok := p.(*redactedProduct); ok {
		p = r.Product
	}
	j, _ := p.(*JFR)
	return j
}

// names guards a Redactor with a lock, because several goroutines use it: those that record, and those that write
// meanwhile. All recordings of a run share one Redactor, and so one lock.
type names struct {
	mu    *sync.Mutex
	by    *redact.Redactor
	known *redact.Functions
}

// newNames makes the names of one recording. by and lock belong to the run.
func newNames(by *redact.Redactor, lock *sync.Mutex) *names {
	return &names{mu: lock, by: by, known: by.Functions()}
}

// Of returns a recording without names.
func (n *names) Of(r *Recorded) *Recorded {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := &Recorded{Summary: n.by.Summary(r.Summary), At: r.At}
	if r.Profile != nil {
		out.Profile = r.Profile.Renamed(n.known.Of)
		out.Profile.Meta = n.by.Meta(r.Profile.Meta)
	}
	return out
}

// Start passes only the machine's CPUs to the product.
func (p *redactedProduct) Start(about session.Facts, stop func()) session.Sink {
	p.names.mu.Lock()
	defer p.names.mu.Unlock()
	about.VMName, about.VMInfo = p.names.by.Version(about.VMName), p.names.by.Version(about.VMInfo)
	about.OS, about.CPU = "", ""
	sink := p.Product.Start(about, stop)
	if sink == nil {
		return nil
	}
	return &redactedSink{to: sink, names: p.names}
}

func (p *redactedProduct) SoFar(r *Recorded) (string, error)  { return p.Product.SoFar(p.names.Of(r)) }
func (p *redactedProduct) Finish(r *Recorded) (string, error) { return p.Product.Finish(p.names.Of(r)) }

// PartSink is a Sink for several parts of a recording.
type PartSink interface {
	session.Sink
	BeginPart(at profile.Instant, m profile.Meta)
}

// redactedSink passes redacted samples on. It embeds no Sink, so that a new method of Sink must be written here by
// hand, with thought for its names.
type redactedSink struct {
	to    session.Sink
	names *names
	// one is held while a sample is passed on: the redacted sample is reused, and several parts deliver samples at the
	// same time.
	one sync.Mutex
}

func (s *redactedSink) Begin(at profile.Instant, m profile.Meta) {
	s.names.mu.Lock()
	m = s.names.by.Meta(m)
	s.names.mu.Unlock()
	s.to.Begin(at, m)
}

// BeginPart implements PartSink.
func (s *redactedSink) BeginPart(at profile.Instant, m profile.Meta) {
	s.names.mu.Lock()
	m = s.names.by.Meta(m)
	s.names.mu.Unlock()
	if to, ok := s.to.(PartSink); ok {
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

// Allocated is passed to Sinks that implement it.
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
