//go:build linux

package span

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"goprof/sampler/bpf"
	"goprof/sampler/ring"
)

// Outputs let a program write spans into rings, each before its sample. The sample of a perf event has no room for what
// a program has read. The program runs in the same interrupt, right before the kernel writes the sample
// (kernel/events/core.c, bpf_overflow_handler), so the two records are neighbours in the ring of the CPU.
type Outputs struct {
	reader *Reader
	array  int // a map with the event of each CPU
	events []cpuEvent
}

type cpuEvent struct{ cpu, fd int }

// mostCPUs bounds the CPUs in a map. Further CPUs have no spans.
const mostCPUs = 4096

// NewOutputs makes Outputs. It returns nil if r is nil, or if the kernel refuses the map: then there are no spans.
func (r *Reader) NewOutputs() *Outputs {
	if r == nil {
		return nil
	}
	array, err := bpf.NewMap(bpf.PerfArrayMap, 4, 4, mostCPUs)
	if err != nil {
		return nil
	}
	return &Outputs{reader: r, array: array}
}

// Open opens an event for each of these CPUs, into its ring, in place of the earlier events: a CPU that was off has
// lost its event. A CPU whose event cannot be opened has no spans.
func (o *Outputs) Open(cpus []int, rings ring.Set) {
	if o == nil {
		return
	}
	o.CloseEvents()
	attr := ring.SpanAttr()
	for i, cpu := range cpus {
		fd, err := ring.OpenEvent(&attr, -1, cpu, rings[i])
		if err != nil {
			continue
		}
		o.events = append(o.events, cpuEvent{cpu, fd})
		bpf.Change(bpf.UpdateElem, o.array, uint32(cpu), binary.NativeEndian.AppendUint32(nil, uint32(fd)))
	}
}

// CloseEvents closes the events. Call it before the rings are closed.
func (o *Outputs) CloseEvents() {
	if o == nil {
		return
	}
	for _, e := range o.events {
		bpf.Change(bpf.DeleteElem, o.array, uint32(e.cpu), nil)
		unix.Close(e.fd)
	}
	o.events = nil
}

// Close closes the events and the map.
func (o *Outputs) Close() {
	if o != nil {
		o.CloseEvents()
		unix.Close(o.array)
	}
}

// LoadForPerf loads a program that writes spans. If the kernel refuses the program, LoadForPerf loads it without spans.
func (o *Outputs) LoadForPerf(program func(*Outputs) *bpf.Code) (fd int, err error) {
	if fd, err = program(o).LoadForPerf(nil); err != nil && o != nil {
		return program(nil).LoadForPerf(nil)
	}
	return fd, err
}

// Load loads a program that does nothing but write spans, for events whose samples are all wanted. It returns -1 if
// there is none.
func (o *Outputs) Load() int {
	if o == nil {
		return -1
	}
	c := bpf.New()
	c.Mov(bpf.R6, bpf.R1)
	o.Write(c, -ring.SpanSize)
	c.Op(bpf.Exit, 0, 0, 0, 0)
	prog, err := c.LoadForPerf(nil)
	if err != nil {
		return -1
	}
	return prog
}

// Write writes code that reads the context of the thread and outputs it. r6 is the program's context (bpf). The code
// uses the other registers except r7, and the program's stack from to on. A process that publishes nothing has no
// record. Afterwards r0 is what the program must return: 1, or 0 if the ring had no room for the span. Then the ring
// has no room for the sample either, and the kernel would count both as lost.
func (o *Outputs) Write(c *bpf.Code, to int) {
	if o != nil {
		o.reader.Read(c, to)
		c.Load(bpf.Load64, bpf.R1, bpf.R10, to+spanState)
		c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "span: written")
		c.Output(o.array, to, ring.SpanSize)
		c.Mov(bpf.R1, bpf.R0)
		c.Imm(bpf.MovImm, bpf.R0, 0)
		c.Jump(bpf.JumpEqImm, bpf.R1, 0, -int(unix.ENOSPC), "span: full")
	}
	c.Label("span: written")
	c.Imm(bpf.MovImm, bpf.R0, 1)
	c.Label("span: full")
}
