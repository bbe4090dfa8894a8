package profile

import "time"

// EventCount is one event in the account of a recording: all hits, as the kernel has counted them, and the hits that
// became samples.
type EventCount struct {
	Name string `json:"name"`
	Unit Weight `json:"unit"` // samples, if hits themselves are counted; or bytes
	// Hits and Amount are exact if a probe has counted them, and 0 if none has.
	Hits     int64 `json:"hits"`
	Amount   int64 `json:"amount"`
	Taken    int64 `json:"taken"`    // hits that became samples
	Stood    int64 `json:"stood"`    // the amount that these stand for
	Missed   int64 `json:"missed"`   // should have become samples, but the kernel had no room
	Interval int64 `json:"interval"` // greatest mean amount between samples
}

// EventKind is an event with samples: its name, as in --event, and its unit. The unit is Samples if each sample is one
// event, or Bytes. With WallTime, an EventKind stands for a wall-clock part of a recording.
type EventKind struct {
	Name string
	Unit Weight
}

// EventAlloc is the name of the event of allocations in the Java heap. EventExceptions and EventClassLoad are those of
// exceptions and of defined classes.
const (
	EventAlloc      = "alloc"
	EventExceptions = "exceptions"
	EventClassLoad  = "class-load"
	EventLeak       = "malloc-leak"
	EventMapLeak    = "mmap-leak"
)

// UnknownClass is the leaf of an event's sample if the event's class could not be read.
const UnknownClass = "[unknown class]"

// Contents is how many bytes of each class were allocated, in a recording of allocations. Samples are taken when a
// thread's buffer is full, and show where objects of a class are allocated. The contents of the buffers show how many
// bytes a class has.
type Contents struct {
	Buffers int64            `json:"buffers"`          // number of read buffers
	Bytes   int64            `json:"bytes"`            // bytes in read buffers
	Of      int64            `json:"of_bytes"`         // bytes in all buffers, as far as hits show
	Unread  map[string]int64 `json:"unread,omitempty"` // buffers that were to be read but were not, by reason
	// Apart is the share of the bytes that the ends of buffers alone would assign to another class. InStep: this is more
	// than chance, because the program repeats itself.
	Apart  float64 `json:"apart"`
	InStep bool    `json:"in_step,omitempty"`
	// Unmet is the number of classes without a stack, because they were at no buffer's end. UnmetBytes are their bytes.
	Unmet      int64 `json:"unmet_classes,omitempty"`
	UnmetBytes int64 `json:"unmet_bytes,omitempty"`
	// Why is why no buffers were read. Then the shares of classes depend on the ends of buffers alone.
	Why string `json:"why,omitempty"`
}

// unread returns how many buffers were not read.
func (c *Contents) unread() (n int64) {
	for _, of := range c.Unread {
		n += of
	}
	return n
}

// Unfreed is the account of a recording of memory that is not freed.
type Unfreed struct {
	// Old was allocated in the first half of the recording and not freed. Young was allocated later and not freed.
	Old   UnfreedPart `json:"old"`
	Young UnfreedPart `json:"young"`
	// NoStack is the part of Old and Young without a stack, because its samples were lost.
	NoStack UnfreedPart `json:"no_stack"`
	Freed   int64       `json:"freed"`   // samples whose memory was freed
	Frees   int64       `json:"frees"`   // calls that free memory
	Full    int64       `json:"full"`    // samples without room
	Unended int64       `json:"unended"` // calls whose end was not seen, at least
	// Parts counts the calls that freed a part of a sampled mapping. The whole mapping counts as not freed.
	Parts int64 `json:"partial_frees,omitempty"`
	// Met is how long allocations were watched, if watching cost the program too much to continue to the end.
	Met time.Duration `json:"met_ns,omitempty"`
	// Followed is how long calls that free memory were watched, if these cost too much, too. Then this time is divided
	// into Old and Young.
	Followed time.Duration `json:"followed_ns,omitempty"`
}

// UnfreedPart is a part of the memory that was not freed.
type UnfreedPart struct {
	Samples     int64 `json:"samples"`
	Allocations int64 `json:"allocations"` // that its samples stand for
	Bytes       int64 `json:"bytes"`
}

func (u *UnfreedPart) Add(allocations, bytes int64) {
	u.Samples, u.Allocations, u.Bytes = u.Samples+1, u.Allocations+allocations, u.Bytes+bytes
}
