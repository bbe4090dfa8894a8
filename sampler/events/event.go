//go:build linux

package events

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"goprof/sampler/span"
)

// An Event is something other than CPU time that goprof samples: each time that it happens, or once for each given
// amount of it. There are two sorts of events.
//
// A probe is an instruction of a file that the process has mapped, mostly the first one of a function. The kernel puts
// a breakpoint there into the process's own copy of the page (a uprobe: kernel/events/uprobes.c). Each time that a
// thread of the process reaches it, the kernel runs a BPF program of goprof's and steps over the breakpoint. The
// program decides whether the hit becomes a sample. For a sample it reads the parts of the thread's memory that Copies
// names, and has the kernel write them with the registers and the stack. So a hit that is no sample costs the thread
// only the breakpoint, and all hits are counted. When the last descriptor is closed, at the latest by goprof's end, the
// kernel removes the breakpoint.
//
// goprof never sets a return probe: that would replace return addresses on the thread's stack.
//
// A counter is one of the kernel's own: page faults, context switches, a tracepoint, the CPU's counters. goprof opens a
// counter for each thread and CPU, and threads that begin later inherit it.
type Event struct {
	Name string
	// Probes are the event's instructions, if the event is a probe.
	Probes []Probe
	// Type and Config say which counter the event is (perf_event_attr), if it has no Probes.
	Type   uint32
	Config uint64
	// Amount is the number + 1 of the function's argument that gives the hit's amount. 0: a hit counts 1.
	Amount int
	// Times and Given are numbers + 1 of arguments, 0 if there is none. Amount is multiplied by the argument Times. A
	// hit whose argument Given is 0 (NULL) does not count.
	Times, Given int
	// Buffer says what a hit does to its thread's buffer (buffer.go). Object is the number + 1 of the argument that has
	// the size of the object for which there is a new buffer.
	Buffer BufferHit
	Object int
	// Retired is set if goprof is to read what buffers held (contents.go).
	Retired *Retired
	// Pairing is set if goprof is to find out what becomes of the memory that the hit's call returns (pairing.go). The
	// event's probes are then at the ends of calls.
	Pairing *Pairing
	// IO is set if the event is calls that read and write (io.go). Its amount is nanoseconds.
	IO *IO
	// Interval is the mean amount between two samples; 0 and 1 mean each hit. A hit of that amount or more is always
	// taken and stands for its own amount. A smaller one is taken with a probability of amount / Interval and then
	// stands for Interval. So on average the samples add up to the total, for any program.
	Interval uint64
	spans    *span.Reader // nil: spans are not read
	// Copies are read at the moment of a hit, in order. Look.Event.Data has all of them, MaxCopies bytes at most.
	Copies []Copy
}

// AllProbes returns the probes of the event, and those at the beginnings of its calls.
func (e *Event) AllProbes() []Probe {
	if e.IO != nil {
		return slices.Concat(e.IO.Lookup, e.IO.Looked)
	}
	p := e.Pairing
	if p == nil {
		return e.Probes
	}
	all := slices.Concat(e.Probes, p.Clearing, p.Frees)
	for i := range p.Begins {
		all = append(all, p.Begins[i].Probe)
	}
	return all
}

func (e *Event) isCounter() bool { return len(e.Probes) == 0 && e.IO == nil }

// Probe is an instruction in a file.
type Probe struct {
	File   *os.File // the mapped file itself: the kernel finds it by this descriptor
	Offset uint64   // the instruction's offset in the file
}

// Copy is a piece of memory that is read at the moment of a hit.
type Copy struct {
	// From is the number + 1 of the argument that holds the piece's address. 0: the address is a word of the data,
	// which begins Before bytes before this piece.
	From   int
	Before int
	Off    int // added to the address
	Size   int // a multiple of 8
	// Text: read only up to a zero byte.
	Text bool
}

// MaxCopies bounds the bytes that are read at one hit.
const MaxCopies = 320

// size returns the bytes of all copies, and of the description of a piece of memory.
func (e *Event) size() (n int) {
	if e.Pairing != nil {
		n = PairedSize
	}
	if e.IO != nil {
		n = ioDataSize
	}
	for _, c := range e.Copies {
		n += c.Size
	}
	return n
}

// dataSize returns how many bytes the program writes for a hit.
func (e *Event) dataSize() int {
	n := dataCopies + e.size()
	if e.Retired != nil {
		n += lotSize
	}
	return n
}

// check returns an error for an event that cannot be sampled.
func (e *Event) check(args int) error {
	at := 0
	numbers := []int{e.Amount, e.Times, e.Given, e.Object}
	if p := e.Pairing; p != nil {
		if e.Buffer != NoBuffer || len(e.Copies) > 0 {
			return fmt.Errorf("sampler: event %s: no copies beside a piece of memory", e.Name)
		}
		numbers = append(numbers, p.Length)
		for i := range p.Begins {
			b := &p.Begins[i]
			numbers = append(numbers, b.Size, b.Times, b.Out, b.Old, b.Access)
		}
	}
	if e.Retired != nil {
		numbers = append(numbers, e.Retired.At, e.Retired.Thread)
		if e.Buffer == NoBuffer || e.Retired.At < 1 || e.Retired.Thread < 1 || e.Retired.Allocated < 0 ||
			e.Retired.Allocated > 1<<20 {
			return fmt.Errorf("sampler: event %s: no buffer that a thread leaves", e.Name)
		}
	}
	for _, n := range numbers {
		if n < 0 || n > args {
			return fmt.Errorf("sampler: event %s: no argument %d", e.Name, n)
		}
	}
	if e.Buffer == NewBuffer && e.Object == 0 {
		return fmt.Errorf("sampler: event %s: a new buffer for no object", e.Name)
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

// ErrNoEvents: a run needs an event.
var ErrNoEvents = errors.New("sampler: no event is given")

// MaxEvents bounds the events of one run.
const MaxEvents = 16
