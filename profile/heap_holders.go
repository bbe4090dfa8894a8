package profile

import "time"

// HeapHeld has the holders of objects, and the leaks.
type HeapHeld struct {
	At        time.Time `json:"at"`
	PID       int       `json:"pid"`
	MainClass string    `json:"main_class,omitempty"`
	// Searched is the share of the heap that was searched for references, the least of all levels.
	Searched float64 `json:"searched_share"`
	// Growth is nil if it was not asked for. Leaks is empty if nothing that grew was proven to be held.
	Growth  *HeapGrowth    `json:"growth,omitempty"`
	Leaks   []*HeapLeak    `json:"leaks"`
	Holders []*HeapHolders `json:"holders"`
	Notes   []string       `json:"notes,omitempty"`
}

// HeapHolders has the holders of one class's objects. Objects were drawn by lot, in proportion to their bytes. Then a
// search followed the references to them, up to a root.
type HeapHolders struct {
	Class string `json:"class"`
	// Looked is how many objects were drawn. Newer: only objects at addresses without objects at the first reading were
	// drawn.
	Looked int  `json:"objects_looked_at"`
	Newer  bool `json:"newer_only,omitempty"`
	// Drawn is the part of the class's bytes that the objects were drawn from. Objects that a collector has moved look
	// newer, too.
	Drawn float64 `json:"drawn_from_share,omitempty"`
	// Rows are sorted: first the ways that end at a root, the largest share first, then the others.
	Rows []*HeapHolder `json:"holders"`
	// Rest is the share of the smallest ways, which are too many for rows.
	Rest float64 `json:"rest_share,omitempty"`
}

// HeapHolder is one way in which objects are held. Ways with equal ends are merged, and Path is the most common of
// them.
type HeapHolder struct {
	// Share is the share of the objects' bytes. Error is half the width of the interval that contains 95 of 100 true
	// values.
	Share float64 `json:"share"`
	Error float64 `json:"share_error,omitempty"`
	// Most is the largest possible share, if the holder of some objects is not known. 0: all holders are known.
	Most float64 `json:"share_at_most,omitempty"`
	// Path leads from the holder of the objects to a root. It is empty if no holder was seen.
	Path []HeapLink `json:"path"`
	// Roots is how many different roots end these ways, such as the threads of a pool.
	Roots int `json:"roots,omitempty"`
	// Missing is why the path does not reach a root. It is empty if it does.
	Missing string `json:"missing,omitempty"`
}

// Kinds of HeapLink. From LinkStatic on they are roots.
const (
	LinkField       = "field"
	LinkElement     = "element"      // of an array of this class
	LinkLoaded      = "loader"       // a static field of a class that Loader's object keeps
	LinkClass       = "class"        // an object of this class keeps the class, and so its loader
	LinkMore        = "more"         // references that are left out of a very long way
	LinkStatic      = "static"       // a static field
	LinkConstant    = "constant"     // a constant of a class
	LinkThread      = "thread"       // a thread that has not ended
	LinkStack       = "stack"        // a word on the stack of a thread, possibly an old one
	LinkNative      = "native"       // a handle of native code
	NoHolder        = "no holder"    // Missing: none was seen in the searched part
	HolderUncertain = "moved"        // Missing: objects or references on the way were moved or changed meanwhile
	HolderFar       = "no root seen" // Missing: the holder of the last holder was not seen
)

type HeapLink struct {
	Kind   string `json:"kind"`
	Class  string `json:"class,omitempty"` // the class with the field, or of the array
	Field  string `json:"field,omitempty"`
	Loader string `json:"loader,omitempty"` // the class of the class's loader, if it is the program's
	Thread string `json:"thread,omitempty"` // its name, or its pool's
	// Times is how often the same reference repeats, as in a list.
	Times int `json:"times,omitempty"`
}

// HeapLeak is classes that certainly grow and are held by one root.
type HeapLeak struct {
	// Path is the most common way to the class that grows fastest.
	Path  []HeapLink `json:"path"`
	Roots int        `json:"roots,omitempty"`
	Bytes HeapSlope  `json:"growth"` // of all its classes, as far as this root was seen to hold them
	// AtLeast: the holder of some objects of these classes is not known.
	AtLeast bool `json:"at_least,omitempty"`
	// Classes grow and are held in this way, the fastest first.
	Classes []string        `json:"classes"`
	Allocs  []HeapAllocSite `json:"allocations,omitempty"`
}

// HeapAllocSite is a stack that allocates objects of a class.
type HeapAllocSite struct {
	Class string   `json:"class"`
	Share float64  `json:"share"` // of the class's bytes
	Bytes int64    `json:"bytes"`
	Stack []string `json:"stack"` // innermost method first
}
