package profile

import (
	"slices"
	"time"
)

// Memory is where the resident memory of a JVM is.
type Memory struct {
	At        time.Time     `json:"at"`
	Took      time.Duration `json:"took_ns"`
	PID       int           `json:"pid"`
	MainClass string        `json:"main_class,omitempty"`
	Collector string        `json:"collector"`
	// Resident and Swapped are the sums of all parts.
	Resident uint64 `json:"resident_bytes"`
	Swapped  uint64 `json:"swapped_bytes"`
	// Twice is how much of Resident is counted more than once, because the process has it at several addresses.
	Twice  uint64       `json:"counted_twice_bytes,omitempty"`
	Kernel KernelMemory `json:"kernel"`
	Parts  []MemoryPart `json:"parts"`
	// Direct is nil if it is not known.
	Direct *DirectMemory `json:"direct,omitempty"`
	Malloc MallocMemory  `json:"malloc"`
	Group  *GroupMemory  `json:"control_group,omitempty"`
	Notes  []string      `json:"notes,omitempty"`
}

// Names of parts. Scripts rely on them.
const (
	HeapPartOfMemory = "heap"
	Metaspace        = "metaspace"
	ClassSpace       = "class-space"
	CodeCache        = "code-cache"
	ThreadStacks     = "stacks"
	CollectorTables  = "collector"
	ClassArchive     = "class-archive"
	MallocMemoryPart = "malloc"
	LibraryMemory    = "libraries"
	MappedFiles      = "files"
	UnnamedMemory    = "unnamed"
)

// MemoryPart is the memory that serves one purpose.
type MemoryPart struct {
	Name     string `json:"name"`
	Resident uint64 `json:"resident_bytes"`
	// Anonymous is the part of Resident that belongs to no file and is not shared.
	Anonymous uint64 `json:"anonymous_bytes"`
	Swapped   uint64 `json:"swapped_bytes"`
	Reserved  uint64 `json:"reserved_bytes"`  // address space
	Committed uint64 `json:"committed_bytes"` // of it: what the program may use now
	// Used is how much the JVM says that it uses, 0: it is not known.
	Used uint64 `json:"used_bytes,omitempty"`
	// Count is how many stacks, files, libraries or other pieces of address space there are.
	Count int `json:"count"`
	// Pieces are the largest, by name.
	Pieces []MemoryPiece `json:"pieces,omitempty"`
}

// MemoryPiece is a part of a part: a file, a library, a table.
type MemoryPiece struct {
	Name     string `json:"name"`
	Resident uint64 `json:"resident_bytes"`
	Reserved uint64 `json:"reserved_bytes"`
}

// KernelMemory is what /proc/PID/status says.
type KernelMemory struct {
	RSS        uint64 `json:"rss_bytes"`
	Anonymous  uint64 `json:"rss_anon_bytes"`
	File       uint64 `json:"rss_file_bytes"`
	Shared     uint64 `json:"rss_shmem_bytes"`
	Swap       uint64 `json:"swap_bytes"`
	PageTables uint64 `json:"page_tables_bytes"` // not in RSS; the control group counts them
	// HugePages is how much of RSS is in transparent huge pages. Nil: it is not known.
	HugePages *uint64 `json:"anon_huge_bytes,omitempty"`
}

// DirectMemory is what java.nio.Bits counts of direct buffers. Their memory is in the part malloc, or unnamed where
// malloc is not glibc's.
type DirectMemory struct {
	Reserved uint64 `json:"reserved_bytes"` // counts towards Max
	Capacity uint64 `json:"capacity_bytes"`
	Count    uint64 `json:"count"`
	Max      uint64 `json:"max_bytes,omitempty"` // 0: it is not known
}

// MallocMemory is what is known of the part malloc: of glibc's arenas, and of pieces that have a mapping each.
type MallocMemory struct {
	// Other is the malloc that the process has in place of glibc's: musl, jemalloc. Its memory is in the part unnamed,
	// except for [heap].
	Other  string `json:"other,omitempty"`
	Arenas int    `json:"arenas"` // without the main one
	InUse  uint64 `json:"in_arenas_bytes"`
	// Looked is how much of the arenas' resident memory was looked through, Free how much of that is free and kept.
	Looked uint64 `json:"looked_through_bytes"`
	Free   uint64 `json:"free_bytes"`
	Mapped uint64 `json:"mapped_bytes"` // resident, in pieces that have a mapping each
	Pieces int    `json:"mapped_count"`
}

// GroupMemory is what the control group with the tightest limit says.
type GroupMemory struct {
	Version int    `json:"version"`
	Path    string `json:"path"`
	Used    uint64 `json:"used_bytes"`
	// Cache is the part of Used that the kernel can take back at any time: pages of files. Nil: it is not known.
	Cache *uint64 `json:"cache_bytes,omitempty"`
	Max   uint64  `json:"limit_bytes,omitempty"` // 0: there is none
	Left  uint64  `json:"left_bytes,omitempty"`  // until the limit, without the cache. 0 where Cache is not known
}

// Part finds a part by its name.
func (m *Memory) Part(name string) *MemoryPart {
	if i := slices.IndexFunc(m.Parts, func(p MemoryPart) bool { return p.Name == name }); i >= 0 {
		return &m.Parts[i]
	}
	return nil
}

// MemoryGrowth is how memory changed over several readings.
type MemoryGrowth struct {
	Over     time.Duration `json:"over_ns"`
	Readings int           `json:"readings"`
	Resident HeapSlope     `json:"resident"`
	// Parts grew for certain, the fastest first.
	Parts []MemoryGrower `json:"parts"`
	// Direct is how direct buffers grew, which are in malloc. Nil: they did not for certain.
	Direct *MemoryGrower `json:"direct,omitempty"`
	// Full is when the control group's limit is reached if it goes on like that. 0: it does not grow for certain, or
	// has no limit.
	Full time.Duration `json:"limit_in_ns,omitempty"`
}

// MemoryGrower is a part that grew.
type MemoryGrower struct {
	Name  string    `json:"name"`
	Bytes HeapSlope `json:"growth"`
	From  uint64    `json:"from_bytes"` // in the first reading
	To    uint64    `json:"to_bytes"`   // in the last one
}
