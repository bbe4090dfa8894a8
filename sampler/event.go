//go:build linux

package sampler

import (
	"errors"
	"fmt"
	"os"
)

// An Event is something other than CPU time of which samples are taken: each time that it happens, or so often that
// the samples stand for a given amount of it. There are two sorts.
//
// A probe is an instruction of a file that the process has mapped, mostly the first one of a function. The kernel puts
// a breakpoint there into the process's own copy of the page (a uprobe: kernel/events/uprobes.c), runs a BPF program of
// ours each time that a thread of the process comes by, and steps over it. The program decides whether the hit becomes
// a sample, reads what is wanted of the thread's memory, and has the kernel write all that with the registers and the
// stack. So a hit that is no sample costs the thread the breakpoint alone, and all hits are counted. When the last
// descriptor is closed, at the latest by goprof's end, the kernel takes the breakpoint out again.
//
// Never a return probe: it would replace return addresses on the thread's stack.
//
// A counter is one of the kernel's own: page faults, context switches, a tracepoint, the CPU's counters. It is opened
// for each thread and CPU, and threads that begin later inherit it.
type Event struct {
	Name string
	// Probes are its instructions, if it is a probe.
	Probes []Probe
	// Type and Config say which counter it is (perf_event_attr), if it has no Probes.
	Type   uint32
	Config uint64
	// Amount is the argument of the function that says how much a hit counts: its number + 1. 0: a hit counts once.
	Amount int
	// Times is the argument that Amount is multiplied with, and Given one without which (0, NULL) a hit is none: their
	// numbers + 1. 0: there is none.
	Times, Given int
	// Interval is the mean amount between two samples; 0 and 1 are each hit. A hit of that amount or more is always
	// taken and stands for its own amount. A smaller one is taken with a probability of amount / Interval and then
	// stands for Interval. So the mean of what samples stand for is what there was, whatever program runs.
	Interval uint64
	// Copies are read in the moment of a hit, one after the other. Look.Event.Data has all, MaxCopies bytes at most.
	Copies []Copy
}

// Probe is an instruction in a file.
type Probe struct {
	File   *os.File // by which the kernel finds it: the file that is mapped itself
	Offset uint64   // in the file
}

// Copy is a piece of memory that is read in the moment of a hit.
type Copy struct {
	// From is the argument that holds its address: its number + 1; or 0: the word that begins Before bytes before this
	// piece in the data holds it.
	From   int
	Before int
	Off    int // is added to the address
	Size   int // a multiple of 8
	// Text: read up to a zero byte only.
	Text bool
}

// MaxCopies bounds what is read of one hit.
const MaxCopies = 320

// size is how many bytes all copies have.
func (e *Event) size() (n int) {
	for _, c := range e.Copies {
		n += c.Size
	}
	return n
}

// check says what is wrong with an event that nobody can have.
func (e *Event) check(args int) error {
	at := 0
	for _, n := range []int{e.Amount, e.Times, e.Given} {
		if n < 0 || n > args {
			return fmt.Errorf("sampler: event %s: no argument %d", e.Name, n)
		}
	}
	for _, c := range e.Copies {
		if c.Size <= 0 || c.Size%8 != 0 || c.From < 0 || c.From > args || at+c.Size > MaxCopies ||
			c.From == 0 && (c.Before < 8 || c.Before > at || c.Before%8 != 0) {
			return fmt.Errorf("sampler: event %s: a copy that cannot be", e.Name)
		}
		at += c.Size
	}
	return nil
}

// EventCount is what is known of one event of a run: all hits, and what became samples.
type EventCount struct {
	Name string
	// Hits and Amount are all that happened, exact: as the program at the probe, or the kernel has counted. Those of
	// counters are known at the end only.
	Hits, Amount uint64
	// Taken is how many became samples, Stood what these stand for.
	Taken int64
	Stood int64
	// Missed is how many should have become samples, but the kernel had no room.
	Missed uint64
	// Interval is the longest mean amount between samples that there was: more than was asked for if hits came too often,
	// or samples cost more than they may.
	Interval uint64
}

// interval is what a sample of a counter stands for.
func (c *EventCount) interval() int64 { return int64(max(c.Interval, 1)) }

// ErrNoEvents: a run of Events needs one.
var ErrNoEvents = errors.New("sampler: no event is given")

// MaxEvents bounds the events of one run.
const MaxEvents = 16
