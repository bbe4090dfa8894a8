package profile

import "time"

// EventCount is what the account of a recording says of one event: all hits, which the kernel has counted, and the hits
// that became samples.
type EventCount struct {
	Name string `json:"name"`
	Unit Weight `json:"unit"` // samples: hits themselves; bytes
	// Hits and Amount are exact where a probe has counted them, and 0 if none has.
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
	EventLeak       = "malloc-leak"
	EventMapLeak    = "mmap-leak"
)

// UnknownClass is the leaf of an event's sample if the class that it is about could not be read.
const UnknownClass = "[unknown class]"

// Contents says how the bytes of classes are known, in a recording of allocations. Samples are taken where a thread's
// buffer ends. They say where objects of a class are allocated. The contents of buffers show how many bytes a class
// has.
type Contents struct {
	Buffers int64            `json:"buffers"`          // that were read
	Bytes   int64            `json:"bytes"`            // that these held
	Of      int64            `json:"of_bytes"`         // that all buffers held, as far as hits say
	Unread  map[string]int64 `json:"unread,omitempty"` // buffers that were to be read, by why they were not
	// Apart is how far the ends of buffers alone would have put the shares of classes from these: the part of the bytes
	// that would be with another class. InStep says that chance does not make so much: the program repeats itself.
	Apart  float64 `json:"apart"`
	InStep bool    `json:"in_step,omitempty"`
	// Unmet is how many classes were at no buffer's end, so that no stack of theirs was seen, and UnmetBytes their bytes.
	Unmet      int64 `json:"unmet_classes,omitempty"`
	UnmetBytes int64 `json:"unmet_bytes,omitempty"`
	// Why is why no buffer was to be read. The shares of classes rest on the ends of buffers then.
	Why string `json:"why,omitempty"`
}

// unread is how many buffers were not read.
func (c *Contents) unread() (n int64) {
	for _, of := range c.Unread {
		n += of
	}
	return n
}

// Unfreed says what became of pieces of memory that were sampled when a recording was of what is not given back.
type Unfreed struct {
	// Old is what was allocated in the first half of the recording and not given back, Young what was allocated later.
	Old   UnfreedPart `json:"old"`
	Young UnfreedPart `json:"young"`
	// NoStack is the part of both whose sample was lost: its stack is not known.
	NoStack UnfreedPart `json:"no_stack"`
	Freed   int64       `json:"freed"`   // samples whose memory was given back
	Frees   int64       `json:"frees"`   // calls that give memory back
	Full    int64       `json:"full"`    // samples for which there was no room
	Unended int64       `json:"unended"` // calls whose end was not met, at least
	// Parts is how many calls gave back a part of a mapping that was sampled. All of it counts as not given back.
	Parts int64 `json:"partial_frees,omitempty"`
	// Met is for how long calls were met, if they cost the program too much to meet them to the end.
	Met time.Duration `json:"met_ns,omitempty"`
	// Followed is for how long calls that give back were met, if these cost too much, too. The halves are of that time.
	Followed time.Duration `json:"followed_ns,omitempty"`
}

// UnfreedPart is a part of what was not given back.
type UnfreedPart struct {
	Samples     int64 `json:"samples"`
	Allocations int64 `json:"allocations"` // that these stand for
	Bytes       int64 `json:"bytes"`
}

// Add adds a sample.
func (u *UnfreedPart) Add(allocations, bytes int64) {
	u.Samples, u.Allocations, u.Bytes = u.Samples+1, u.Allocations+allocations, u.Bytes+bytes
}
