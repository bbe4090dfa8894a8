package profile

import (
	"slices"
	"time"
)

// Memory is which parts of a JVM use its resident memory.
type Memory struct {
	At        time.Time     `json:"at"`
	Took      time.Duration `json:"took_ns"`
	PID       int           `json:"pid"`
	MainClass string        `json:"main_class,omitempty"`
	Collector string        `json:"collector"`
	// Resident and Swapped are the sums of all parts.
	Resident uint64 `json:"resident_bytes"`
	Swapped  uint64 `json:"swapped_bytes"`
	// Twice is how much of Resident is counted more than once, because the process maps it at several addresses.
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
	Committed uint64 `json:"committed_bytes"` // the part of Reserved that the program may use now
	// Used is the used memory by the JVM's own counters. 0: it is not known.
	Used uint64 `json:"used_bytes,omitempty"`
	// Count is how many stacks, files, libraries or other mappings the part has.
	Count int `json:"count"`
	// Pieces are the largest pieces, by name.
	Pieces []MemoryPiece `json:"pieces,omitempty"`
}

// MemoryPiece is a file, a library or a table in a part.
type MemoryPiece struct {
	Name     string `json:"name"`
	Resident uint64 `json:"resident_bytes"`
	Reserved uint64 `json:"reserved_bytes"`
}

// KernelMemory is from /proc/PID/status.
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

// DirectMemory is java.nio.Bits' counters of direct buffers. Their memory is in the part malloc, or in unnamed if
// malloc is not glibc's.
type DirectMemory struct {
	Reserved uint64 `json:"reserved_bytes"` // counts towards Max
	Capacity uint64 `json:"capacity_bytes"`
	Count    uint64 `json:"count"`
	Max      uint64 `json:"max_bytes,omitempty"` // 0: it is not known
}

// MallocMemory describes the part malloc: glibc's arenas, and allocations with a mapping of their own.
type MallocMemory struct {
	// Other is the allocator that the process uses instead of glibc's: musl, jemalloc. Its memory is in the part unnamed,
	// except for [heap].
	Other  string `json:"other,omitempty"`
	Arenas int    `json:"arenas"` // without the main one
	InUse  uint64 `json:"in_arenas_bytes"`
	// Looked is how much of the arenas' resident memory was read, and Free how much of that is free but kept.
	Looked uint64 `json:"looked_through_bytes"`
	Free   uint64 `json:"free_bytes"`
	Mapped uint64 `json:"mapped_bytes"` // resident memory of allocations with a mapping of their own
	Pieces int    `json:"mapped_count"`
}

// GroupMemory is the memory of the control group with the tightest limit.
type GroupMemory struct {
	Version int    `json:"version"`
	Path    string `json:"path"`
	Used    uint64 `json:"used_bytes"`
	// Cache is the part of Used that the kernel can take back at any time: pages of files. Nil: it is not known.
	Cache *uint64 `json:"cache_bytes,omitempty"`
	Max   uint64  `json:"limit_bytes,omitempty"` // 0: there is none
	Left  uint64  `json:"left_bytes,omitempty"`  // until the limit, without the cache; 0 if Cache is not known
}

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
	// Parts are the parts that certainly grew, the fastest first.
	Parts []MemoryGrower `json:"parts"`
	// Direct is the growth of direct buffers, which are in malloc. Nil: they did not certainly grow.
	Direct *MemoryGrower `json:"direct,omitempty"`
	// Full is the time until the control group's limit if memory keeps growing like this. 0: it may not grow, or there is
	// no limit.
	Full time.Duration `json:"limit_in_ns,omitempty"`
}

type MemoryGrower struct {
	Name  string    `json:"name"`
	Bytes HeapSlope `json:"growth"`
	From  uint64    `json:"from_bytes"` // in the first reading
	To    uint64    `json:"to_bytes"`   // in the last one
}
