// Package look holds the result of one look at a thread: the machine's state, and what the sampler knows of the look.
// Looks go through the queues between sampler and session. A walker gets only the machine's state (process.Snapshot).
// It knows nothing of weights and tallies, and may not import this package.
package look

import "goprof/process"

// Look is one look at a thread.
type Look struct {
	process.Snapshot
	// When is CLOCK_MONOTONIC in nanoseconds at the moment of the look.
	When int64
	// CPU is how much CPU time the thread has used since the sample of it before, in nanoseconds.
	CPU int64
	// Count is how many samples this look stands for, 1 or more; 0 if that was not set, which is 1, too.
	Count int64
	// Tally is how often this look counts, nil where each look counts once; then there is no Waiting, either.
	Tally   *Tally
	Waiting Waiting
	// Context is what the thread works for, if the process publishes that.
	Context Context
	// Event is what the look was taken at, if that was not the use of CPU time.
	Event Hit
	// Waker says which wait the thread ended, if the look was taken at that.
	Waker Waker
	// Kernel are the addresses of the kernel's functions that the thread was in, innermost first, where they were asked
	// for.
	Kernel []uint64
	// Slot is the look's place in its Queue.
	Slot uint32
}

// Waker is what ended a wait: the thread of the look, or what interrupted it. The kernel's frames distinguish these.
type Waker struct {
	Of    *Tally // of the look at the thread that waited; nil: the look was taken at something else
	After *Tally // of what the look's thread itself waited for meanwhile; nil: for nothing, or not known
	TID   int    // of the thread that waited
	PID   int    // the process of the look's thread; 0: the CPU was idle
	Comm  string // the kernel's name of the look's thread
}

// Hit is an event that a thread met.
type Hit struct {
	Number int   // of the event + 1; 0: none
	Amount int64 // that the look stands for, in the event's own unit
	// Own is the amount of the hit itself: Amount may be more, for those that became no look.
	Own  int64
	Data []byte // what was copied in that moment
	// Sort is the use of a hit that belongs to a buffer whose contents are read. Weight is the number of such hits for
	// which this one counts.
	Sort   HitSort
	Weight float64
}

// HitSort is what a hit is good for that has to do with a thread's buffer (sampler/events/buffer.go).
type HitSort uint8

const (
	HitAtEnd         HitSort = iota // a sample: the object is at the end of a buffer
	HitAlone                        // a sample: the object is as large as a buffer, and counts for itself
	HitWithoutSample                // no sample: it only shows that there was a hit
)

// Reset makes l a look that has brought nothing yet, and keeps its memory.
func (l *Look) Reset() {
	l.Snapshot.Reset()
	l.When, l.CPU, l.Count, l.Tally = 0, 0, 1, nil
	l.Waiting, l.Context = Waiting{}, Context{}
	l.Event = Hit{Data: l.Event.Data[:0]}
	l.Waker = Waker{}
	l.Kernel = l.Kernel[:0]
}

// Samples is how many samples the look stands for.
func (l *Look) Samples() int64 { return max(l.Count, 1) }
