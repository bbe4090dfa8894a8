package profile

import "time"

// HeapHeld says who holds objects, and what leaks.
type HeapHeld struct {
	At        time.Time `json:"at"`
	PID       int       `json:"pid"`
	MainClass string    `json:"main_class,omitempty"`
	// Searched is the part of the heap that was looked through for references, the least of all levels.
	Searched float64 `json:"searched_share"`
	// Growth is nil if it was not asked for. Leaks is empty if nothing that grew was proven to be held.
	Growth  *HeapGrowth    `json:"growth,omitempty"`
	Leaks   []*HeapLeak    `json:"leaks"`
	Holders []*HeapHolders `json:"holders"`
	Notes   []string       `json:"notes,omitempty"`
}

// HeapHolders says who holds the objects of one class: objects were drawn by lot, in proportion to their bytes, and
// references to them were looked for, up to a root.
type HeapHolders struct {
	Class string `json:"class"`
	// Looked is how many objects were drawn. Newer says that only objects at addresses without objects at the first
	// reading were drawn.
	Looked int  `json:"objects_looked_at"`
	Newer  bool `json:"newer_only,omitempty"`
	// Drawn is the part of the class's bytes from which they were drawn. Objects that a collector has moved look newer,
	// too.
	Drawn float64 `json:"drawn_from_share,omitempty"`
	// Rows are sorted: those that end at a root, the largest share first, then the others.
	Rows []*HeapHolder `json:"holders"`
	// Rest is the share of the smallest ways, which have no row: there are too many.
	Rest float64 `json:"rest_share,omitempty"`
}

// HeapHolder is one way in which objects are held. Ways with equal ends are one, and Path is the commonest of them.
type HeapHolder struct {
	// Share is the part of the objects' bytes, and Error half the width of the interval in which 95 of 100 true ones lie.
	Share float64 `json:"share"`
	Error float64 `json:"share_error,omitempty"`
	// Most is the largest possible share, if the holder of some objects is not known. 0: all holders are known.
	Most float64 `json:"share_at_most,omitempty"`
	// Path leads from what refers to the objects up to a root. It is empty if no holder was seen.
	Path []HeapLink `json:"path"`
	// Roots is how many different roots end these ways: threads of a pool, for instance.
	Roots int `json:"roots,omitempty"`
	// Missing says why the path does not reach a root. It is empty if it does.
	Missing string `json:"missing,omitempty"`
}

// Kinds of HeapLink. From LinkStatic on they are roots.
const (
	LinkField       = "field"
	LinkElement     = "element"      // of an array of that class
	LinkLoaded      = "loader"       // a static field of a class that Loader's object keeps
	LinkClass       = "class"        // an object of that class keeps the class, and so its loader
	LinkMore        = "more"         // references that a very long way leaves out
	LinkStatic      = "static"       // a static field
	LinkConstant    = "constant"     // what a class's constants stand for
	LinkThread      = "thread"       // a thread that has not ended
	LinkStack       = "stack"        // a word on the stack of a thread: it may be old
	LinkNative      = "native"       // a handle of native code
	NoHolder        = "no holder"    // Missing: none was seen in what was read
	HolderUncertain = "moved"        // Missing: the objects, or references on the way, were moved or changed meanwhile
	HolderFar       = "no root seen" // Missing: who holds the last holder was not seen
)

// HeapLink is a reference.
type HeapLink struct {
	Kind   string `json:"kind"`
	Class  string `json:"class,omitempty"` // that has the field, or of the array
	Field  string `json:"field,omitempty"`
	Loader string `json:"loader,omitempty"` // the class of the class's loader, if that is one of the program
	Thread string `json:"thread,omitempty"` // its name, or of its pool
	// Times is how often the same reference follows itself, as in a list.
	Times int `json:"times,omitempty"`
}

// HeapLeak is what grows for certain and is held by one root.
type HeapLeak struct {
	// Path is the commonest way to the class that grows fastest.
	Path  []HeapLink `json:"path"`
	Roots int        `json:"roots,omitempty"`
	Bytes HeapSlope  `json:"growth"` // of all its classes, as far as it was seen that it holds them
	// AtLeast says that the holder of some objects of these classes is not known.
	AtLeast bool `json:"at_least,omitempty"`
	// Classes grow and are held so, the fastest first.
	Classes []string        `json:"classes"`
	Allocs  []HeapAllocSite `json:"allocations,omitempty"`
}

// HeapAllocSite is a stack that allocates objects of a class.
type HeapAllocSite struct {
	Class string   `json:"class"`
	Share float64  `json:"share"` // of the class's bytes
	Bytes int64    `json:"bytes"`
	Stack []string `json:"stack"` // the innermost method first
}
