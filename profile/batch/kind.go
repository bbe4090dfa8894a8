package batch

import (
	"strings"

	"goprof/profile"
	"goprof/profile/resource"
)

// Of sets the event of the batch's samples. It has no Name for CPU time and for wall-clock modes.
func (b *Batch) Of(event profile.EventKind) {
	if b.Event = event; event.Name != "" && !event.Unit.IsTime() {
		b.Meta.Interval = 0 // an event's interval is an amount
	}
}

// Kind returns the kind of profile under which servers' pages list it. If Go has the same kind, its name is Go's:
// process_cpu, memory, mutex.
func (b *Batch) Kind() string {
	switch {
	case b.Event.Name == profile.EventAlloc:
		return "memory"
	case b.Event.Name == eventLock:
		return "mutex"
	case b.Event.Name != "":
		return resource.LabelName(b.Event.Name)
	}
	for i := range b.Samples {
		if b.Samples[i].Wall {
			return "wall"
		}
	}
	if b.Meta.Mode == "" || b.Meta.Mode == profile.ModeCPU {
		return "process_cpu"
	}
	return resource.LabelName(b.Meta.Mode)
}

// eventLock is the event of waits for locks.
const eventLock = "lock"

// EventValue returns the type and the unit of what samples of an event count, as in Go's own profiles: alloc_space in
// bytes, delay in nanoseconds. For an event without amounts, the type is its own name.
func EventValue(kind profile.EventKind) (what, unit string) {
	name := strings.Trim(resource.LabelName(kind.Name), "_")
	switch {
	case kind.Unit == profile.Bytes:
		return name + "_space", "bytes"
	case kind.Name == eventLock:
		return "delay", "nanoseconds"
	case kind.Unit.IsTime():
		return name, "nanoseconds"
	}
	return name, "count"
}

// SamplesOf returns the type for the number of samples of an event, for formats in which each type has a profile of its
// own.
func SamplesOf(kind profile.EventKind) string {
	return strings.Trim(resource.LabelName(kind.Name), "_") + "_samples"
}
