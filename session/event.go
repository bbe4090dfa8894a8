//go:build linux

package session

import (
	"os"
	"strings"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/vmstructs"
)

// EventPlan is one event or several that were found in a JVM: what is to be opened, and what their samples say.
type EventPlan struct {
	Name string
	// Unit is the unit in which samples are counted: profile.Samples (each is one event) or profile.Bytes. For several
	// events it is profile.Samples.
	Unit  profile.Weight
	Note  string // what is not seen of it; empty: nothing
	list  []sampler.Event
	parts []eventPart
}

// JoinEvents makes one plan of several. It takes over the files that they hold.
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

// eventPart says what is made of the samples of one event of a plan.
type eventPart struct {
	of   *profile.EventKind
	leaf eventLeaf    // names the frame on top; nil: there is none
	kind profile.Kind // of that frame
	java bool         // the stack begins with its first Java frame: what the JVM does there is always the same
}

// eventLeaf names what an event was about, by the bytes that were copied in its moment. It is empty if that is not
// known.
type eventLeaf func(r *eventReader, hit *look.Look) string

// eventReader reads the names for the events of a plan.
type eventReader struct {
	*Session
	classes *vmstructs.ClassNames
	tables  map[uint64]string // of functions of C++ classes, by their address
	args    func(hit *look.Look, number int) uint64
	frames  map[string]*profile.Func
}

// Close gives back the files that the plan holds.
func (p *EventPlan) Close() {
	closed := map[*os.File]bool{}
	for i := range p.list {
		for _, at := range p.list[i].Probes {
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

// maxEventFrames bounds how many different names of leaves are kept.
const maxEventFrames = 1 << 14

// frame makes the frame on top of a stack, by its name.
func (e *eventReader) frame(name string, kind profile.Kind) profile.Frame {
	fn, ok := e.frames[name]
	if !ok {
		if len(e.frames) >= maxEventFrames {
			clear(e.frames)
		}
		fn = &profile.Func{Name: name}
		e.frames[name] = fn
	}
	return profile.Frame{Func: fn, Kind: kind, BCI: -1}
}

// takeEvent walks the stack of an event and adds it to the profile.
func (r *recording) takeEvent(snap *look.Look) {
	plan, number := r.opt.Event, snap.Event.Number-1
	if number < 0 || number >= len(plan.parts) || !r.follow(snap) {
		return
	}
	part := &plan.parts[number]
	ofBuffer := r.shares != nil && plan.list[number].Retired != nil
	if ofBuffer && plan.list[number].Buffer == sampler.OutsideBuffer && snap.Event.Sort != look.HitAlone {
		r.shares.takeBeside(part.leaf(r.events, snap), &snap.Event)
	}
	if snap.Event.Sort == look.HitTold {
		return
	}
	n, amount := snap.Event.Amount, int64(0)
	if part.of.Unit != profile.Samples {
		n, amount = 1, snap.Event.Amount
	}
	r.walk(snap, &r.stack)
	r.wantSoon(snap.TID, &r.stack)
	leaf := ""
	if part.leaf != nil {
		leaf = part.leaf(r.events, snap)
	}
	if !r.alive() {
		r.profile.Lose(profile.ProcessGone, n)
		return
	}
	if !r.proven(snap, snap.When) {
		r.profile.Lose(profile.Stale, n)
		return
	}
	if part.java {
		dropTop(&r.stack, firstJava(&r.stack))
	}
	r.putKernel(snap)
	if leaf != "" {
		putTop(&r.stack, r.events.frame(leaf, part.kind))
	}
	stack, root := r.subject(snap)
	if r.opt.SureLeaf {
		stack.Settle()
	}
	if r.opt.HideInternal {
		r.folder.Stack(stack)
	}
	held := ofBuffer && snap.Event.Sort == look.HitAtEnd && r.hold(snap, root, stack, leaf)
	if held {
		// its bytes come later
	} else if r.opt.Lean {
		r.profile.Count(stack, n, 0)
	} else if plan.Unit == profile.Samples {
		r.profile.AddValue(root, stack, n, 0)
	} else {
		r.profile.AddValue(root, stack, n, amount)
	}
	r.contexts.link(&snap.Context, n) // none: nothing is stopped for an event
	if !held {
		r.tellEvent(snap, stack, part, leaf != "", n, amount)
	}
	r.sampled[snap.TID] = true
}

// tellEvent tells a sample of an event, which has just been counted. about: its leaf is no code.
func (r *recording) tellEvent(snap *look.Look, stack *profile.Stack, part *eventPart, about bool, n, amount int64) {
	if r.timed == nil {
		return
	}
	t := r.timed
	t.sample = profile.Sample{At: t.clock.at(snap.When), Thread: r.threadOf(snap, stack), Stack: stack, Count: n,
		Bytes: amount, Event: part.of, About: about, NoState: true}
	t.sink.Sample(&t.sample)
}

// firstJava is how many frames lie on top of the first one of Java; 0 if there is none.
func firstJava(s *profile.Stack) int {
	for i := range s.Frames {
		if s.Frames[i].Kind.Java() {
			return i
		}
	}
	return 0
}

// dropTop takes frames off the top of a stack.
func dropTop(s *profile.Stack, n int) {
	s.Frames = append(s.Frames[:0], s.Frames[n:]...)
	if s.Carrier > 0 {
		s.Carrier = max(s.Carrier-n, 0)
	}
}

// putTop puts a frame on top of a stack.
func putTop(s *profile.Stack, f profile.Frame) {
	s.Frames = append(s.Frames, profile.Frame{})
	copy(s.Frames[1:], s.Frames)
	s.Frames[0] = f
	if s.Carrier > 0 {
		s.Carrier++
	}
}

// eventCounts is what the account of a recording says of its events.
func (p *EventPlan) counts(list []sampler.EventCount) (counts []profile.EventCount) {
	for i, c := range list {
		counts = append(counts, profile.EventCount{Name: c.Name, Unit: p.parts[i].of.Unit,
			Hits: int64(c.Hits), Amount: int64(c.Amount),
			Taken: c.Taken, Stood: c.Stood, Missed: int64(c.Missed), Interval: int64(c.Interval)})
	}
	return counts
}
