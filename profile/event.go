package profile

import "time"

// EventCount is what the account of a recording says of one event: all hits, which the kernel has counted, and the hits
// that became samples.
type EventCount struct {
	Name string `json:"name"`
	Unit Weight `json:"unit"` // samples: hits themselves; bytes
	// Hits and Amount are exact where a probe has counted them, and 0 where none has.
	Hits     int64 `json:"hits"`
	Amount   int64 `json:"amount"`
	Taken    int64 `json:"taken"`    // hits that became samples
	Stood    int64 `json:"stood"`    // the amount that these stand for
	Missed   int64 `json:"missed"`   // should have become samples, but the kernel had no room
	Interval int64 `json:"interval"` // mean amount between samples, the longest
}

// EventKind is an event of which samples are taken: its name, as --event has it, and what it is counted in. That is
// Samples, of which each is one event, or Bytes. With WallTime it stands for a wall-clock part of a recording.
type EventKind struct {
	Name string
	Unit Weight
}

// EventAlloc is the name of the event of allocations in the Java heap. EventExceptions and EventClassLoad are those of
// exceptions and of classes that are defined.
const (
	EventAlloc      = "alloc"
	EventExceptions = "exceptions"
	EventClassLoad  = "class-load"
)

// UnknownClass is the leaf of an event's sample if the class that it is about could not be read.
const UnknownClass = "[unknown class]"

// AddValue counts a stack n times, with an amount in the profile's other weight: bytes, for an event.
func (p *Profile) AddValue(root string, s *Stack, n, amount int64) {
	if n > 0 {
		p.AddAt(root, s, n, time.Duration(amount))
	}
}
