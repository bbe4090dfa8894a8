package triage

import (
	"net/netip"
	"time"

	"goprof/profile"
	"goprof/triage/vitals"
)

// Evidence is what was seen of a JVM within some seconds.
type Evidence struct {
	PID     int
	Stopped bool // by a signal or a debugger, or frozen, at the beginning and at the end
	// Frozen says by which control group it is frozen, and Thaw is the command that lets it run. Empty: by none.
	Frozen, Thaw string
	// Outdated says how far the JDK is behind. Empty: goprof knows of nothing newer.
	Outdated string
	// CPU and Wall were recorded at the same time; the root of each stack is its thread. Nil: there is none.
	CPU, Wall *profile.Profile
	Dumps     []Dump            // oldest first
	Earlier   FrameSums         // a second before the last dump
	Readings  []*vitals.Reading // oldest first, about one a second
	// Rates is what happened between the first reading and the last.
	Rates vitals.Rates
	// Heap is what filled the heap at the end. Nil: it was not counted.
	Heap *profile.Heap
	// Memory is where the resident memory was, oldest first: at the beginning, at the end, and twice in between. The last
	// one knows what is free in malloc's arenas.
	Memory []*profile.Memory
	// Children are the processes that this process has started, and theirs, at the end. Nil: they are not known.
	Children []Child
}

// Child is a process that descends from the JVM.
type Child struct {
	PID   int
	Name  string
	Began bool    // while the JVM was looked at
	CPU   float64 // CPUs that it used
}

// FrameSums are what profile.ThreadDump.FrameSum was of virtual threads that no carrier ran, by their IDs.
type FrameSums struct {
	At  time.Time
	Was map[uint64]uint64
}

// Dump is a look at all threads.
type Dump struct {
	At      time.Time
	Took    time.Duration
	Threads []profile.ThreadDump
	// Locks: what threads hold and wait for was read.
	Locks bool
	// Waits says how far the waits of virtual threads without a carrier were read.
	Waits profile.VirtualWaits
	// Remotes are the threads that wait for a connection that this process has opened.
	Remotes map[int]Remote
	// Opened counts the connections that this process has opened, by their other ends. Accepted is how many others
	// have opened. Connections of this process to itself are not counted. Both are known where Remotes is.
	Opened   map[netip.AddrPort]int
	Accepted int
	// Pools is what the JVM's objects say of pools. Nil: nothing.
	Pools *profile.Pools
	// Virtual are the virtual threads that no carrier ran, with their stacks and without their locks. VirtualErr says
	// why they could not be read. Only the first dump and the last have them.
	Virtual    []profile.ThreadDump
	VirtualErr string
}

// Remote is the other end of a connection that a thread waits for.
type Remote struct {
	Address netip.AddrPort
	State   string // of the connection: ESTABLISHED, SYN_SENT
}

// Span is how long the readings were apart.
func (e *Evidence) Span() time.Duration {
	if len(e.Readings) < 2 {
		return 0
	}
	return e.Readings[len(e.Readings)-1].At.Sub(e.Readings[0].At)
}
