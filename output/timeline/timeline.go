package timeline

import (
	"fmt"
	"time"

	"goprof/output/recording"
	"goprof/profile"
)

// Options bound what is kept.
type Options struct {
	Samples int  // at most; 0 for DefaultSamples
	Frames  int  // of the stacks of all samples together, at most; 0 for any number
	Tracks  int  // at most; 0 for DefaultTracks
	Virtual int  // tracks of single virtual threads, at most; 0 for DefaultVirtual
	Merge   bool // equal neighbours of a thread become one, even if there is room for all of them
}

// These bounds hold if Options have none.
const (
	DefaultSamples = 1 << 21 // of 64 bytes each
	DefaultTracks  = 200
	DefaultVirtual = 50
)

// Timeline is a recording in memory.
type Timeline struct {
	Info   recording.Info
	Part   string // of a recording that has several
	Value  Value
	Frames []Frame
	Nodes  []Node // stacks: each is a path to the root. Node 0 is the empty stack
	Tracks []*Track

	First, Last int64 // of all samples, ns since 1970; both 0 without any
	Looks       int64 // that all samples stand for, with the samples left out

	Slot    time.Duration // equal stacks of a thread within that time are one sample; 0: only if they are neighbours
	Merged  int64         // samples that became part of another one
	LeftOut int64         // looks that are in no track, because there was no room
	earlier map[profile.Thread][]string

	NoStack int64 // looks with stacks for which there was no room: they have the stack [too many stacks]
}

// Frame is one frame of any stack.
type Frame struct {
	Func  *profile.Func
	Kind  profile.Kind
	Line  int32
	Depth int32 // 0 is a frame of the machine's, n the n-th method inlined into it
}

// Node is the last frame of a stack that begins with the parent's frames.
type Node struct {
	Parent, Frame int32
}

// Sample is one look, or several equal ones.
type Sample struct {
	At    int64 // ns since 1970, of the first one; 0 in recordings without times
	CPU   int64 // ns
	Span  int64 // ns
	Bytes int64
	Looks int64
	Node  int32
	State profile.State
	Why   profile.Reason
	Wall  bool
}

// Track is a thread, or several that are shown as one.
type Track struct {
	Name    string // may hold anything
	TID     int    // 0 for virtual threads and groups
	ID      int64  // the Java thread's
	Virtual bool
	Earlier []string // names that the thread had before
	Threads int      // that are on the track
	Group   bool     // the name is that of several threads
	Weight  int64    // of all samples, in Timeline.Value
	Samples []Sample
}

// Value is what samples weigh.
type Value uint8

const (
	Looks    Value = iota
	CPU            // ns of CPU time
	Span           // ns that a look of a wall-clock mode stands for
	Interval       // looks, each of the recording's interval in ns
	Bytes          // of allocations
)

// IsTime reports whether the value is in nanoseconds.
func (v Value) IsTime() bool { return v == CPU || v == Span || v == Interval }

// Of returns what a sample weighs.
func (t *Timeline) Of(s *Sample) int64 {
	switch t.Value {
	case CPU:
		return s.CPU
	case Span:
		return s.Span
	case Interval:
		return saturated(s.Looks, int64(t.Info.Meta.Interval))
	case Bytes:
		return s.Bytes
	}
	return s.Looks
}

// Path returns a node's stack, root first, in the space of to.
func (t *Timeline) Path(node int32, to []int32) []int32 {
	to = to[:0]
	for ; node != 0; node = t.Nodes[node].Parent {
		to = append(to, t.Nodes[node].Frame)
	}
	for i, j := 0, len(to)-1; i < j; i, j = i+1, j-1 {
		to[i], to[j] = to[j], to[i]
	}
	return to
}

// Notes say in sentences what was merged and left out, and why samples weigh what they do.
func (t *Timeline) Notes() (notes []string) {
	if t.Slot > 0 {
		notes = append(notes, fmt.Sprintf("there are too many samples to keep each: those of a thread that have the same"+
			" stack within %v are one (%d became part of another)", t.Slot, t.Merged))
	}
	if t.NoStack > 0 {
		notes = append(notes, fmt.Sprintf("there are too many different stacks: %d samples are under %s",
			t.NoStack, fullName))
	}
	if t.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("there are too many samples: %d are left out", t.LeftOut))
	}
	return notes
}
