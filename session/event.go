//go:build linux

package session

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/events"
	"goprof/sampler/look"
	"goprof/vmstructs"
)

// EventPlan is one or more events that were found in a JVM: what must be opened for them, and how to read their
// samples.
type EventPlan struct {
	Name string
	// Unit is the unit in which samples are counted: profile.Samples (each is one event) or profile.Bytes. For several
	// events it is profile.Samples.
	Unit  profile.Weight
	Note  string // which calls the event does not see; empty: it sees all
	list  []events.Event
	parts []eventPart
}

// JoinEvents makes one plan of several. The new plan owns the files that they hold.
func JoinEvents(plans []*EventPlan) *EventPlan {
	if len(plans) == 1 {
		return plans[0]
	}
	all := &EventPlan{}
	for i, p := range plans {
		if i > 0 {
			all.Name += ","
		}
		all.Name += p.Name
		if p.Note != "" {
			all.Note = strings.TrimPrefix(all.Note+"; "+p.Name+": "+p.Note, "; ")
		}
		all.list, all.parts = append(all.list, p.list...), append(all.parts, p.parts...)
	}
	return all
}

// eventPart says how to turn samples of one event into stacks.
type eventPart struct {
	of   *profile.EventKind
	leaf eventLeaf    // names the frame on top; nil: there is none
	kind profile.Kind // of the frame on top
	java bool         // the stack begins with its first Java frame, because the JVM's frames above it are always the same
}

// eventLeaf names what a hit was about, from the bytes that were copied at the hit. The name is empty if that is not
// known.
type eventLeaf func(r *eventReader, hit *look.Look) string

type eventReader struct {
	*Session
	classes *vmstructs.ClassNames
	tables  map[uint64]string // names of the function tables of C++ classes, by address
	args    func(hit *look.Look, number int) uint64
	io      *ioBook        // calls that read and write; nil: none are sampled
	call    profile.IOCall // the last of them
	frames  map[string]*profile.Func
}

// Close closes the files that the plan holds.
func (p *EventPlan) Close() {
	closed := map[*os.File]bool{}
	for i := range p.list {
		for _, at := range p.list[i].AllProbes() {
			if !closed[at.File] {
				closed[at.File] = true
				at.File.Close()
			}
		}
	}
	p.list = nil
}

func (s *Session) newEventReader() *eventReader {
	layout := &s.Process.CPU().Probe
	return &eventReader{Session: s, classes: s.VM.NewClassNames(), frames: map[string]*profile.Func{},
		args: func(hit *look.Look, number int) uint64 { return hit.Regs[layout.Args[number-1]] }}
}

// maxEventFrames bounds the number of different leaf names that are kept.
const maxEventFrames = 1 << 14

// frame returns the frame for the top of a stack, by its name.
func (e *eventReader) frame(name string, kind profile.Kind) profile.Frame {
	fn := profile.Cached(e.frames, maxEventFrames, name, func() *profile.Func { return &profile.Func{Name: name} })
	return profile.Frame{Func: fn, Kind: kind, BCI: -1}
}

type eventful struct {
	*recording
	plan *EventPlan

	// Facts of the present look.
	part   *eventPart
	leaf   string
	buffer bool // the event is about buffers whose contents are read
}

func (e *eventful) together() int              { return 1 }
func (e *eventful) seen(snap *look.Look) int64 { return snap.When }

func (e *eventful) wanted(snap *look.Look) bool {
	number := snap.Event.Number - 1
	if number < 0 || number >= len(e.plan.parts) || !e.follow(snap) {
		return false
	}
	event := &e.plan.list[number]
	e.part, e.buffer = &e.plan.parts[number], e.shares != nil && event.Retired != nil
	if e.buffer && event.Buffer == events.OutsideBuffer && snap.Event.Sort != look.HitAlone {
		e.shares.takeBeside(e.part.leaf(e.events, snap), &snap.Event)
	}
	return snap.Event.Sort != look.HitWithoutSample
}

func (e *eventful) walked(snap *look.Look, _ *profile.Stack) {
	if e.leaf = ""; e.part.leaf != nil {
		e.leaf = e.part.leaf(e.events, snap)
	}
}

// stands returns how many samples a look stands for, and the amount in the event's own unit. A fraction of a sample is
// rounded up or down by lot.
func (e *eventful) stands(snap *look.Look) (n, amount int64) {
	if e.plan.list[snap.Event.Number-1].IO != nil {
		own := max(snap.Event.Own, 1)
		return max((snap.Event.Amount+rand.Int64N(own))/own, 1), snap.Event.Amount
	}
	if e.part.of.Unit != profile.Samples {
		return 1, snap.Event.Amount
	}
	return snap.Event.Amount, 0
}

func (e *eventful) lose(snap *look.Look, why profile.Reason) {
	n, _ := e.stands(snap)
	e.profile.Lose(why, n)
}

func (e *eventful) shape(snap *look.Look, stack *profile.Stack) bool {
	if e.part.java {
		java := slices.IndexFunc(stack.Frames, func(f profile.Frame) bool { return f.Kind.Java() })
		dropTop(stack, max(java, 0))
	}
	e.kernel.put(snap, stack)
	if e.leaf != "" {
		putTop(stack, e.events.frame(e.leaf, e.part.kind))
	}
	return true
}

// count adds a sample of an event to the profile. If its amount is not known yet, count holds it back.
func (e *eventful) count(snap *look.Look, stack *profile.Stack, root string) {
	n, amount := e.stands(snap)
	link := e.contexts.link(&snap.Context, n)
	e.sampled[snap.TID] = true
	if e.plan.list[snap.Event.Number-1].Pairing != nil {
		e.keepUnfreed(snap, root, stack)
		return
	}
	if e.buffer && snap.Event.Sort == look.HitAtEnd && e.hold(snap, root, stack, e.leaf) {
		return // its bytes come later
	}
	value := amount
	if e.plan.Unit == profile.Samples {
		value = 0
	}
	e.add(root, stack, n, time.Duration(value))
	if t := e.timed; t != nil {
		t.sample = profile.Sample{At: t.clock.at(snap.When), Thread: e.threadOf(snap, stack), Stack: stack, Count: n,
			Bytes: amount, Event: e.part.of, About: e.leaf != "", NoState: true, Link: link}
		if e.plan.list[snap.Event.Number-1].IO != nil {
			t.sample.Bytes, t.sample.Wall, t.sample.Span, t.sample.IO = 0, true, time.Duration(amount), &e.events.call
		}
		t.sink.Sample(&t.sample)
	}
}

func (e *eventful) account(sum *profile.Summary, stats *sampler.Stats) {
	sum.Events, sum.RateReached = e.plan.counts(stats.Events), 0
	sum.Contents = e.contents(e.plan)
	e.shares.correct(sum.Events)
	if b := e.io(); b != nil && b.done {
		sum.IO = &b.sum
	}
	if e.unfreed != nil && e.unfreed.done {
		sum.Unfreed = &e.unfreed.sum
	}
}

// settleAll finds the names of opened files and peers while they are still open.
func (e *eventful) settleAll() {
	if b := e.io(); b != nil {
		b.takeNotes()
	}
}

// io returns what is known of files and peers. It is nil if calls that read and write are not recorded.
func (r *recording) io() *ioBook {
	if r.events == nil {
		return nil
	}
	return r.events.io
}

func dropTop(s *profile.Stack, n int) {
	s.Frames = slices.Delete(s.Frames, 0, n)
	if s.Carrier > 0 {
		s.Carrier = max(s.Carrier-n, 0)
	}
}

func putTop(s *profile.Stack, f profile.Frame) {
	s.Frames = slices.Insert(s.Frames, 0, f)
	if s.Carrier > 0 {
		s.Carrier++
	}
}

func (p *EventPlan) counts(list []sampler.EventCount) (counts []profile.EventCount) {
	for i, c := range list {
		counts = append(counts, profile.EventCount{Name: c.Name, Unit: p.parts[i].of.Unit,
			Hits: int64(c.Hits), Amount: int64(c.Amount),
			Taken: c.Taken, Stood: c.Stood, Missed: int64(c.Missed), Interval: int64(c.Interval)})
	}
	return counts
}
