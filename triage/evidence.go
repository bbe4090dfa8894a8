package triage

import (
	"net/netip"
	"time"

	"goprof/profile"
	"goprof/triage/vitals"
)

// Evidence is what package examine saw of a JVM within some seconds.
type Evidence struct {
	PID     int
	Stopped bool // by a signal, a debugger or a freezer; at the beginning and at the end
	// Frozen names the control group that freezes the JVM, and Thaw is the command that lets it run. Both are empty if
	// none does.
	Frozen, Thaw string
	// Outdated says how far the JDK is behind, or is empty if goprof knows of no newer one.
	Outdated string
	// CPU and Wall were recorded at the same time. The root of each stack is its thread. A profile that could not be
	// recorded is nil.
	CPU, Wall *profile.Profile
	Dumps     []Dump            // oldest first
	Earlier   FrameSums         // a second before the last dump
	Readings  []*vitals.Reading // oldest first, about one a second
	// Rates are the changes from the first reading to the last.
	Rates vitals.Rates
	// Heap is what filled the heap at the end. It is nil if the heap was not counted.
	Heap *profile.Heap
	// Memory are readings of the resident memory, oldest first: at the beginning, twice in between, and at the end.
	// Only the last one has the free part of malloc's arenas.
	Memory []*profile.Memory
	// Children are the descendants of this process at the end. It is nil if they are not known.
	Children []Child
}

// Child is a process that descends from the JVM.
type Child struct {
	PID   int
	Name  string
	Began bool    // its process began while the JVM was examined
	CPU   float64 // CPUs that it used
}

// FrameSums holds profile.ThreadDump.FrameSum of virtual threads without a carrier, by ID.
type FrameSums struct {
	At  time.Time
	Was map[uint64]uint64
}

// Dump is a look at all threads.
type Dump struct {
	At      time.Time
	Took    time.Duration
	Threads []profile.ThreadDump
	// Locks reports whether the locks that threads hold and wait for were read.
	Locks bool
	// Waits says how far the waits of virtual threads without a carrier were read.
	Waits profile.VirtualWaits
	// Remotes are the threads that wait for a connection that this process has opened.
	Remotes map[int]Remote
	// Opened counts the connections that this process has opened, by their other ends. Accepted is the number of
	// connections that other processes have opened. Connections of this process to itself are in neither. Both are
	// known if Remotes is.
	Opened   map[netip.AddrPort]int
	Accepted int
	// Pools is what the JVM's objects show of pools, or nil.
	Pools *profile.Pools
	// Virtual are the virtual threads without a carrier, with stacks and without locks. VirtualErr says why they could
	// not be read. Only the first dump and the last have them.
	Virtual    []profile.ThreadDump
	VirtualErr string
}

// Remote is the other end of a connection that a thread waits for.
type Remote struct {
	Address netip.AddrPort
	State   string // of the connection: ESTABLISHED, SYN_SENT
}

// Span returns the time between the first reading and the last.
func (e *Evidence) Span() time.Duration {
	if len(e.Readings) < 2 {
		return 0
	}
	return e.Readings[len(e.Readings)-1].At.Sub(e.Readings[0].At)
}
