//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/events"
	"goprof/session"
)

// An agent samples each JVM in one mode (cpu or wall). Beside that it may record events that the kernel counts (alloc,
// exceptions, libc:write), and waits. Each of these has its own recording, its own batches and its own share of the
// budget. An event that is not available is reported once for each JVM, and the JVM is recorded without it.

// waits maps each event that is a kind of waiting to the thread states that count for it. nil stands for all states.
var waits = map[string][]profile.State{
	"off-cpu": nil,
	"lock":    {profile.Blocked, profile.Parked},
}

// IsWait reports whether an event is a kind of waiting.
func IsWait(event string) bool {
	_, is := waits[event]
	return is
}

// MostEvents limits the events of a configuration, because each event needs a recording in each JVM.
const MostEvents = 8

func (s *Settings) checkEvents() error {
	if len(s.Events) > MostEvents {
		return fmt.Errorf("event names no more than %d events", MostEvents)
	}
	for i := range s.Events {
		e := &s.Events[i]
		switch {
		case IsWait(e.Name) && s.Mode.IsWall():
			return fmt.Errorf("event %s goes with mode cpu: mode %s has the waits", e.Name, s.Mode)
		case IsWait(e.Name) && e.Every != 0:
			return fmt.Errorf("event %s has no amount behind it: its samples are times", e.Name)
		}
	}
	if s.has("lock") && s.has("off-cpu") {
		return errors.New("event off-cpu has the waits for locks, too: leave out lock")
	}
	return nil
}

func (s *Settings) has(event string) bool {
	return slices.ContainsFunc(s.Events, func(e session.AskedEvent) bool { return e.Name == event })
}

// EventsOf returns the events to record in an attached JVM.
func (s *Settings) EventsOf(j *Candidate) []session.AskedEvent {
	if len(s.EventMatch) > 0 && anyFits(s.EventMatch, j, true) != Wanted {
		return nil
	}
	return s.Events
}

// Beside is an event that is recorded beside the samples of the mode.
type Beside struct {
	Event session.AskedEvent
	Sink  session.Sink
	Begin func() // called first
	// Started is called when the event's recording has begun. The Control governs that recording.
	Started func(Control)
	// Failed is called once if the event is not available.
	Failed func(error)
}

// besides makes the wanted events of a recording.
func (a *Agent) besides(r *record, wanted []session.AskedEvent, send func(event)) (list []Beside) {
	for _, b := range r.beside {
		if !slices.Contains(wanted, b.event) {
			continue
		}
		var spent func() expense
		list = append(list, Beside{Event: b.event, Sink: b.batches,
			Begin:   func() { spent = a.meter() },
			Started: func(c Control) { send(event{beside: b, control: c, cost: spent()}) },
			Failed:  func(err error) { send(event{beside: b, err: err, cost: spent()}) }})
	}
	return list
}

func (a *Agent) handleBeside(g *guest, e event, now time.Time) {
	if e.err == nil {
		e.beside.resume(now)
		a.start(e.beside, e.control)
		return
	}
	why := e.err.Error()
	if bad := (*session.EventError)(nil); errors.As(e.err, &bad) {
		why = bad.Why
	}
	e.beside.postpone(now)
	a.refuseEvent(g, e.beside.event.Name, why, now)
}

// refuseEvent logs, once for each JVM and event, that the event is not recorded.
func (a *Agent) refuseEvent(g *guest, name, why string, now time.Time) {
	a.metrics.refuseEvent(name)
	if cause := "event " + name; !g.said[cause] {
		g.said[cause] = true
		a.tell(now, fmt.Sprintf("%s is recorded without event %s: %s", a.called(g), a.hide(name), a.hide(why)))
	}
}

func (r *record) all() []*record { return append([]*record{r}, r.beside...) }

// recordBeside records the events until ctx is done. It begins them one after the other. Each has its own session.
func (t *hostTarget) recordBeside(ctx context.Context, how *Recording) {
	done := make(chan struct{}, len(how.Beside))
	for i := range how.Beside {
		b := &how.Beside[i]
		b.Begin()
		begun := make(chan struct{})
		tellBegun := sync.OnceFunc(func() { close(begun) })
		go func() {
			defer func() { done <- struct{}{} }()
			defer tellBegun()
			if err := t.keepEvent(ctx, how, b, tellBegun); err != nil && ctx.Err() == nil && t.Alive() {
				b.Failed(err)
			}
		}()
		<-begun
	}
	for range how.Beside {
		<-done
	}
}

// keepEvent records one event. If the agent drops the event, keepEvent waits until the agent starts it again.
func (t *hostTarget) keepEvent(ctx context.Context, how *Recording, b *Beside, begun func()) error {
	again := make(chan struct{}, 1)
	for retry := false; ; retry = true {
		switch err := t.recordEvent(ctx, how, b, begun, again); {
		case err != nil && (!retry || ctx.Err() != nil || !t.Alive()):
			return err
		case err != nil:
			b.Failed(err) // the agent tries again later
		}
		select {
		case <-again:
			b.Begin()
		case <-ctx.Done():
			return nil
		}
	}
}

// recordEvent records one event until ctx is done, or the event is dropped.
func (t *hostTarget) recordEvent(ctx context.Context, how *Recording, b *Beside, begun func(), again chan struct{},
) error {
	s, err := session.Attach(t.jvm.PID)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, drop := context.WithCancel(ctx)
	defer drop()
	opt := session.RecordOptions{Sink: versioned{b.Sink, t.host.version}, Lean: true, Part: b.Event.Name}
	governed := &eventControl{drop: drop, again: again, base: how.Settings.interval()}
	if states, is := waits[b.Event.Name]; is {
		opt.Mode, opt.Engine, opt.Interval = session.WaitingMode, session.PtraceEngine, how.Interval
		opt.Pace, opt.Weight, opt.LeaveIdle = new(atomic.Int64), profile.WallTime, true
		if states != nil {
			opt.States = func(is profile.State) bool { return slices.Contains(states, is) }
		}
	} else {
		if opt.Event, err = s.FindEvent(b.Event.Name, b.Event.Every); err != nil {
			if bad := (*session.EventError)(nil); errors.As(err, &bad) {
				t.host.ExplainEvent(t.jvm.PID, bad)
			}
			return err
		}
		defer opt.Event.Close()
		opt.Engine, opt.Weight, opt.MostSamples = session.PerfEngine, opt.Event.Unit, how.Settings.Rate
	}
	opt.Started = func(e sampler.Engine) {
		governed.latest = e.(latest)
		governed.events, _ = e.(*events.Engine)
		governed.pace = opt.Pace
		b.Started(governed)
		begun()
	}
	_, _, err = s.Record(ctx, opt)
	return err
}

type eventControl struct {
	latest
	events *events.Engine // nil for a recording of waits
	pace   *atomic.Int64
	base   time.Duration // CPU time between two samples, as configured
	drop   func()
	again  chan<- struct{}
}

// Govern reduces the samples by the same factor as those of CPU time.
func (c *eventControl) Govern(interval time.Duration, share float64) bool {
	if c.events == nil {
		c.pace.Store(int64(float64(interval) / max(share, leastShare)))
		return true
	}
	c.events.Thin(float64(interval) / float64(c.base) / max(share, leastShare))
	return true
}

func (c *eventControl) Drop() { c.drop() }

func (c *eventControl) Again() {
	select {
	case c.again <- struct{}{}:
	default: // a restart was already requested
	}
}
