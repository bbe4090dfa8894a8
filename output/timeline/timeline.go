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
	Merge   bool // merge equal neighbours of a thread even if there is room for all
}

// The defaults of Options.
const (
	DefaultSamples = 1 << 21 // of 64 bytes each
	DefaultTracks  = 200
	DefaultVirtual = 50
)

// Timeline is a recording in memory.
type Timeline struct {
	Info   recording.Info
	Part   string // of a recording with several parts
	Value  Value
	Frames []Frame
	Nodes  []Node // stacks: each node is a path to the root. Node 0 is the empty stack
	Tracks []*Track

	First, Last int64 // of all samples, ns since 1970; both 0 without samples
	Looks       int64 // of all samples, including those left out

	Slot    time.Duration // equal stacks of a thread within this time are merged; 0: only if they are neighbours
	Merged  int64         // samples that were merged into another one
	LeftOut int64         // looks in no track, because there was no room
	earlier map[profile.Thread][]string

	NoStack int64 // looks whose stack had no room: they have the stack [too many stacks]
}

type Frame struct {
	Func  *profile.Func
	Kind  profile.Kind
	Line  int32
	Depth int32 // 0 is a physical frame, n the n-th method inlined into it
}

// Node is the last frame of a stack. The other frames are the parent's stack.
type Node struct {
	Parent, Frame int32
}

// Sample is one look, or several equal ones.
type Sample struct {
	At    int64 // ns since 1970, of the first look; 0 in recordings without times
	CPU   int64 // ns
	Span  int64 // ns
	Bytes int64
	Looks int64
	Node  int32
	State profile.State
	Why   profile.Reason
	Wall  bool
}

// Track is a thread, or several threads that are shown together.
type Track struct {
	Name    string // may contain any text
	TID     int    // 0 for virtual threads and groups
	ID      int64  // of the Java thread
	Virtual bool
	Earlier []string // earlier names of the thread
	Threads int      // number of threads on the track
	Group   bool     // the name is for several threads
	Weight  int64    // sum of all samples, in Timeline.Value
	Samples []Sample
}

// Value is the weight of samples.
type Value uint8

const (
	Looks    Value = iota
	CPU            // ns of CPU time
	Span           // ns that a look of a wall-clock mode stands for
	Interval       // looks, each of which stands for the recording's interval, in ns
	Bytes          // bytes of allocations
)

func (v Value) IsTime() bool { return v == CPU || v == Span || v == Interval }

// Of returns the weight of a sample.
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

// Path returns a node's stack, root first, in the memory of to.
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

// Notes say in sentences what was merged and left out, and why samples have their weight.
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
