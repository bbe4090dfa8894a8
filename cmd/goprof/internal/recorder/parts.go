//go:build linux

package recorder

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/product"
	"goprof/profile"
	"goprof/sampler"
	"goprof/session"
)

// A recording may have several parts that go into one JFR file: --event cpu,alloc,lock. All events are one part. CPU
// time and each kind of waiting are other parts. Each part has its own Session, engine, threads and account. The parts
// share the file and the clock. The first part leads: it reports the threads to the file, and when it ends, all parts
// end.

// Part is the definition of one part of a recording. RecordOptions has no Duration, Visits, Sink, Full, Event or
// Started: the recorder sets these. Engine may be AutoEngine.
type Part struct {
	session.RecordOptions
	Events []session.AskedEvent // events to sample, in place of CPU time
}

// UsualMin is the default shortest wait that gets a stack. A larger Min also leaves out shorter calls of events.
const UsualMin = 10 * time.Microsecond

type part struct {
	o       *Options
	want    Part
	pid     int
	session *session.Session
	engine  session.EngineName
	event   *session.EventPlan // nil for CPU time or a mode
	hottest *product.Hottest   // of the present file
	visits  chan session.Visit
}

func (p *part) open(talk io.Writer) (err error) {
	if p.session == nil {
		if p.session, err = session.Attach(p.pid); err != nil {
			return exit.CannotLook(p.pid, err)
		}
	}
	if err := p.choose(talk); err != nil {
		return err
	}
	return p.findEvent()
}

func (p *part) close() {
	if p.event != nil {
		p.event.Close()
	}
	if p.session != nil {
		p.session.Close()
	}
}

func (p *part) record(ctx context.Context, length time.Duration, sink session.Sink,
	started func(sampler.Engine)) (*profile.Profile, profile.Summary, error) {
	p.hottest = new(product.Hottest)
	opt := p.want.RecordOptions
	opt.Duration, opt.Engine, opt.Event = length, p.engine, p.event
	opt.Visits, opt.Sink, opt.Started = p.visits, sink, started
	if sink != nil { // this kind of product is made from the Sink's samples, which have threads
		opt.Full, opt.Threads = p.hottest.Add, false
	}
	if p.event != nil {
		opt.Weight = p.event.Unit
	}
	stacks, sum, err := p.session.Record(ctx, opt)
	sum.Meta.Version, stacks.Meta.Version = p.o.Files.Version, p.o.Files.Version
	return stacks, sum, err
}

// recordParts records all parts. It returns the account of the leading part, which contains the accounts of the others.
func (r *Recorder) recordParts(ctx context.Context, length time.Duration, sink session.Sink,
	stop func()) (*profile.Profile, profile.Summary, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	sums, errs := make([]profile.Summary, len(r.beside)), make([]error, len(r.beside))
	var others sync.WaitGroup
	begun := false
	begin := func(sampler.Engine) {
		begun = true
		for i, p := range r.beside {
			others.Go(func() {
				var stacks *profile.Profile
				if stacks, sums[i], errs[i] = p.record(ctx, 0, sideSink{sink.(product.PartSink)}, nil); errs[i] != nil {
					stop()
				}
				p.hottest.Describe(&sums[i], stacks)
				sums[i] = p.further(&sums[i])
			})
		}
	}
	stacks, sum, err := r.part.record(ctx, length, sink, begin)
	end()
	others.Wait()
	sum.Notes = r.notes(&sum)
	r.hottest.Describe(&sum, stacks)
	if begun {
		sum.Parts = sums
	}
	return stacks, sum, cmp.Or(err, errors.Join(errs...))
}

// further returns the account of another part, without the facts that are in the leading part's account.
func (p *part) further(s *profile.Summary) profile.Summary {
	sum := *s
	sum.Meta.Version = p.o.Files.Version
	sum.OwnCPU, sum.Allocated = 0, nil
	sum.Notes = append(sum.Notes, p.ownNotes(&sum)...)
	return sum
}

// sideSink passes on only the samples of another part. The leading part reports threads and the time.
type sideSink struct{ to product.PartSink }

func (s sideSink) Begin(at profile.Instant, m profile.Meta)        { s.to.BeginPart(at, m) }
func (s sideSink) Sample(sample *profile.Sample)                   { s.to.Sample(sample) }
func (s sideSink) ThreadStart(_ profile.Instant, _ profile.Thread) {}
func (s sideSink) ThreadEnd(_ profile.Instant, _ profile.Thread)   {}
func (s sideSink) Tick(_ profile.Instant, _ int)                   {}
