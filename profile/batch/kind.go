package batch

import (
	"strings"

	"goprof/profile"
	"goprof/profile/resource"
)

// Of returns the event of the batch's samples: it has no Name for CPU time, and for modes.
func (b *Batch) Of(event profile.EventKind) {
	if b.Event = event; event.Name != "" && !event.Unit.IsTime() {
		b.Meta.Interval = 0 // theirs is an amount
	}
}

// Kind returns the kind of profile by which the pages of servers find it. If Go has the same kind, its name is Go's:
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

// eventLock are waits for locks.
const eventLock = "lock"

// EventValue returns the type and the unit of what samples of an event count, as Go's own profiles have them:
// alloc_space in bytes, delay in nanoseconds. Events that are counted have their own name.
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

// SamplesOf is the type of the number of samples of an event, for formats in which each type has a profile of its own.
func SamplesOf(kind profile.EventKind) string {
	return strings.Trim(resource.LabelName(kind.Name), "_") + "_samples"
}
