package recording

import (
	"cmp"
	"slices"

	"goprof/profile"
)

// Part is one kind of samples in a recording: CPU time, waits, allocations. Samples of two parts cannot be added up.
type Part struct {
	// Name is the part's name in Options.Event.
	Name string
	// Samples is the number of the part's samples, if it is known before they are read.
	Samples int64
	// Kind is the Event of the part's samples if all parts are read. For CPU time it has no Name.
	Kind profile.EventKind
	// Meta and Summary are those of the recording that the part belongs to. Parts with the same Meta.Part were recorded
	// together, and share one account.
	Meta    profile.Meta
	Summary *profile.Summary
	Weights []profile.Weight

	read   bool     // alone, or with parts that have the same samples
	events []string // of a JFR file: those that are its samples
	values []value  // of a pprof profile
}

// Part returns the index in Parts of a sample's part. It is 0 if only one part is read.
func (i *Info) Part(s *profile.Sample) int {
	if !i.All {
		return 0
	}
	kind := profile.EventKind{}
	if s.Event != nil {
		kind = *s.Event
	}
	return max(slices.IndexFunc(i.Parts, func(p Part) bool { return p.Kind == kind }), 0)
}

// Of returns the Info for one part alone.
func (i *Info) Of(part int) Info {
	if !i.All {
		return *i
	}
	p, one := &i.Parts[part], *i
	one.Parts, one.All, one.Event = nil, false, p.Name
	one.Meta, one.Summary, one.Weights, one.Kind = p.Meta, p.Summary, p.Weights, p.Kind
	one.Meta.Part = ""
	return one
}

// LeftOut returns the parts that are not read, and the other events.
func (i *Info) LeftOut() (list []Part) {
	for k := range i.Parts {
		if !i.All && !i.Parts[k].read {
			list = append(list, i.Parts[k])
		}
	}
	return append(list, i.Others...)
}

// maxOthers bounds the events in no part that are listed.
const maxOthers = 64

// allParts returns the parts of a JFR file, the default first, and the events with stacks that are in no part.
func (c *contents) allParts() (parts, others []Part) {
	has := func(event string) bool {
		return slices.ContainsFunc(parts, func(p Part) bool { return slices.Contains(p.events, event) })
	}
	add := func(events []string) {
		if len(events) > 0 && !has(events[0]) {
			parts = append(parts, c.part(events))
		}
	}
	if usual, err := c.usual(); err == nil {
		add(usual)
	}
	for _, event := range c.first {
		if c.mode(event) != profile.ModeCPU {
			add(slices.DeleteFunc([]string{event}, func(e string) bool { return !c.has(e) }))
		}
	}
	for _, group := range EventGroups {
		if !c.ours || group == profile.ModeCPU {
			add(c.group(group))
		}
	}
	for _, event := range []string{exceptionThrow, classDefine} {
		if !c.ours && c.has(event) {
			add([]string{event})
		}
	}
	for _, event := range c.withStacks() {
		if isLife(event) || event == executionSample { // a note is about executionSample
			continue
		}
		if len(others) < maxOthers && !has(event) {
			others = append(others, Part{Name: event, Samples: c.counts[event]})
		}
	}
	return parts, others
}

func (c *contents) part(events []string) Part {
	p := Part{Kind: c.partKind(events[0]), events: events, Weights: c.weights(events[0])}
	p.Name = cmp.Or(p.Kind.Name, profile.ModeCPU)
	for _, e := range events {
		p.Samples += c.counts[e]
	}
	return p
}

// partKind returns the Event of samples of a type if all parts are read.
func (c *contents) partKind(event string) profile.EventKind {
	if kind := c.kind(event); kind != nil {
		return *kind
	}
	switch {
	case c.waits[event] != "":
		return profile.EventKind{Name: c.waits[event], Unit: profile.WallTime}
	case event == nativeSample && !c.ours:
		return profile.EventKind{Name: "native"}
	case event == wallSample:
		return profile.EventKind{Name: profile.ModeWall, Unit: profile.WallTime}
	case event == monitorEnter:
		return profile.EventKind{Name: "lock", Unit: profile.WallTime}
	case c.mode(event) == profile.EventIO:
		return profile.EventKind{Name: profile.EventIO, Unit: profile.WallTime}
	case event == threadPark:
		return profile.EventKind{Name: "park", Unit: profile.WallTime}
	case c.mode(event) == profile.ModeCPU:
		return profile.EventKind{}
	}
	return profile.EventKind{Name: event, Unit: profile.WallTime}
}
