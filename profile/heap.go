package profile

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Heap is the contents of a JVM's heap, by class.
type Heap struct {
	At        time.Time     `json:"at"`
	Took      time.Duration `json:"took_ns"`
	PID       int           `json:"pid"`
	MainClass string        `json:"main_class,omitempty"`
	Collector string        `json:"collector"`
	// Capacity is the greatest possible size of the heap. 0: it is not known.
	Capacity uint64 `json:"capacity_bytes,omitempty"`
	// Copied is how many bytes were read.
	Copied uint64     `json:"copied_bytes"`
	Parts  []HeapPart `json:"parts"`
	// Classes are sorted by their bytes, the largest first.
	Classes []*HeapClass `json:"classes"`
	Largest []*HeapArray `json:"largest_arrays,omitempty"`
	// OldCollections counts the collections of the old generation, or of a heap without generations, since the JVM's
	// start. It is nil if the JVM does not count them.
	OldCollections *uint64 `json:"old_collections,omitempty"`
	// Swept is the time since the last collection that removed all dead objects from the old generation and all dead
	// humongous objects. It is nil if there was none, if it is not known, or if this collector leaves such objects.
	Swept *time.Duration `json:"old_swept_ago_ns,omitempty"`
	Notes []string       `json:"notes,omitempty"`
}

// HeapLive stands for the parts from which a sweep (Heap.Swept) removes dead objects: old and humongous.
const HeapLive = "live"

// HeapPart is a part of the heap: "young", "old", "humongous", or "heap" if parts are not distinguished.
type HeapPart struct {
	Name string `json:"name"`
	Used uint64 `json:"used_bytes"` // up to the tops of its areas
	// Max is the greatest possible size of the part. 0: it is not known.
	Max uint64 `json:"max_bytes,omitempty"`
	// Seen is how many of the used bytes were read. If it is less than Used, the numbers of this part are estimates.
	Seen uint64 `json:"seen_bytes"`
	// Units is how many units of the part were drawn by lot. 0: the whole part was read.
	Units int `json:"drawn_pieces,omitempty"`
	// Moved: the collector moved objects of the part during the reading. Objects may have been counted twice, or never.
	Moved bool `json:"collected_meanwhile,omitempty"`
	// Unseen is how many objects a class may have in this part although none was seen. The bound holds in 95 of 100 cases.
	Unseen float64    `json:"unseen_objects,omitempty"`
	Unread HeapUnread `json:"not_counted_bytes"`
}

// HeapUnread is the bytes of a part without objects that could be counted.
type HeapUnread struct {
	Buffers uint64 `json:"buffers"` // of threads, for future objects
	Making  uint64 `json:"making"`  // incomplete objects
	Moving  uint64 `json:"moving"`  // moved by the collector during the reading
	Unknown uint64 `json:"unknown"` // dead objects of unloaded classes, or damaged memory
	Memory  uint64 `json:"memory"`  // memory that could not be read
}

// HeapAmount is a number of objects and their bytes. The errors are half the widths of intervals that contain 95 of 100
// true numbers. They are 0 if everything was counted.
type HeapAmount struct {
	Objects      float64 `json:"objects"`
	Bytes        float64 `json:"bytes"`
	ObjectsError float64 `json:"objects_error,omitempty"`
	BytesError   float64 `json:"bytes_error,omitempty"`
}

// Plus adds amounts of two parts, whose errors are independent.
func (a HeapAmount) Plus(b HeapAmount) HeapAmount {
	return HeapAmount{Objects: a.Objects + b.Objects, Bytes: a.Bytes + b.Bytes,
		ObjectsError: math.Hypot(a.ObjectsError, b.ObjectsError), BytesError: math.Hypot(a.BytesError, b.BytesError)}
}

type HeapClass struct {
	Name string `json:"class"`
	// Loader is boot, platform, application, or the class of the loader. Empty: it is not known.
	Loader string `json:"loader,omitempty"`
	HeapAmount
	// Parts are the amounts in each part with objects of the class, or with objects that a sample may have missed.
	Parts map[string]HeapAmount `json:"parts,omitempty"`
	// Lengths are the lengths of an array class, the shortest first.
	Lengths []HeapLengths `json:"lengths,omitempty"`
	// Filler: the JVM fills memory with these objects.
	Filler bool `json:"filler,omitempty"`
}

// HeapLengths counts the arrays with lengths between From and To.
type HeapLengths struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	HeapAmount
	Parts map[string]HeapAmount `json:"parts,omitempty"`
}

type HeapArray struct {
	Address uint64 `json:"-"`
	Class   string `json:"class"`
	Length  uint64 `json:"length"`
	Bytes   uint64 `json:"bytes"`
	Part    string `json:"part"`
}

func (h *Heap) Part(name string) *HeapPart {
	if i := slices.IndexFunc(h.Parts, func(p HeapPart) bool { return p.Name == name }); i >= 0 {
		return &h.Parts[i]
	}
	return nil
}

// Used returns the used bytes of all parts.
func (h *Heap) Used() (used uint64) {
	for i := range h.Parts {
		used += h.Parts[i].Used
	}
	return used
}

// Only returns the objects in one part, or in the parts that HeapLive stands for.
func (h *Heap) Only(part string) *Heap {
	parts := []string{part}
	if part == HeapLive {
		parts = []string{"old", "humongous"}
	}
	only := *h
	only.Parts, only.Classes, only.Largest = []HeapPart{}, []*HeapClass{}, nil
	for _, part := range parts {
		if p := h.Part(part); p != nil {
			only.Parts = append(only.Parts, *p)
		}
	}
	in := func(of map[string]HeapAmount) (sum HeapAmount, in map[string]HeapAmount) {
		in = map[string]HeapAmount{}
		for _, part := range parts {
			if a, ok := of[part]; ok {
				in[part], sum = a, sum.Plus(a)
			}
		}
		return sum, in
	}
	for _, c := range h.Classes {
		one := *c
		if one.HeapAmount, one.Parts = in(c.Parts); one.Objects == 0 {
			continue
		}
		one.Lengths = nil
		for _, l := range c.Lengths {
			if l.HeapAmount, l.Parts = in(l.Parts); l.Objects > 0 {
				one.Lengths = append(one.Lengths, l)
			}
		}
		only.Classes = append(only.Classes, &one)
	}
	slices.SortStableFunc(only.Classes, func(a, b *HeapClass) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for _, a := range h.Largest {
		if slices.Contains(parts, a.Part) {
			only.Largest = append(only.Largest, a)
		}
	}
	return &only
}

// Sampled reports whether some part of the heap was only read in units drawn by lot.
func (h *Heap) Sampled() bool {
	return slices.ContainsFunc(h.Parts, func(p HeapPart) bool { return p.Units > 0 })
}

// Sum returns all bytes that were not counted.
func (u HeapUnread) Sum() uint64 { return u.Buffers + u.Making + u.Moving + u.Unknown + u.Memory }

// HeapGrowth is how a heap changed over several readings.
type HeapGrowth struct {
	Over     time.Duration `json:"over_ns"`
	Readings int           `json:"readings"`
	// Part is the compared part: "old" with humongous objects, or "heap".
	Part string    `json:"part"`
	Used HeapSlope `json:"used"`
	// Collected: the part was collected in between. Otherwise classes may have grown by garbage that was not collected
	// yet. Uncounted: the JVM does not count its collections. Then Collected is false.
	Collected bool `json:"collected"`
	Uncounted bool `json:"collections_not_known,omitempty"`
	// Classes are the classes that grew, the fastest first.
	Classes []*HeapGrower `json:"classes"`
	// Full is the time until the part is full if it keeps growing like this. 0: it does not grow, or its limit is not
	// known.
	Full time.Duration `json:"full_in_ns,omitempty"`
}

// HeapSlope is a change in bytes a second, with half the width of the interval that contains 95 of 100 true values.
type HeapSlope struct {
	Rate  float64 `json:"bytes_per_second"`
	Error float64 `json:"error"`
}

type HeapGrower struct {
	Name    string    `json:"class"`
	Loader  string    `json:"loader,omitempty"`
	Bytes   HeapSlope `json:"growth"`
	Objects float64   `json:"objects_per_second"`
	From    float64   `json:"from_bytes"` // in the first reading
	To      float64   `json:"to_bytes"`   // in the last one
}
