//go:build linux

package events

import (
	"goprof/arch"
	"goprof/sampler/bpf"
	"goprof/sampler/look"
	"goprof/sampler/ring"
)

// The program of one event's probes. The program counts the hit and decides whether the hit becomes a sample. For a
// sample it reads the wanted memory into its own stack, and gives these bytes to bpf_perf_event_output. The kernel then
// writes a record into the ring of the CPU (kernel/trace/bpf_trace.c). The record has these bytes, and the registers
// and the stack of the thread, because goprof asks for these when it opens the ring's event. The program returns 0, so
// the probe's own event writes nothing.

// eventCounts is the memory that a program shares with goprof: the only value of a BPF map, which goprof has mapped.
type eventCounts struct {
	Hits, Amount uint64 // the sums of all hits
	Interval     uint64 // goprof may change it
	Missed       uint64 // records for which the ring had no room
	Paused       uint64 // set by goprof: no hit counts
	pairCounts          // counts of an event with a Pairing
}

// The offsets of these fields.
const (
	countHits     = 0
	countAmount   = 8
	countInterval = 16
	countMissed   = 24
	countPaused   = 32
	countsSize    = 4096 // a mapping has a page in any case, and none is smaller
)

// The fields before the copies in a record.
const (
	dataNumber = 0  // the event's number + 1
	dataAmount = 8  // what the sample stands for
	dataOwn    = 16 // the amount of the hit itself
	dataSpan   = 24 // the span, by package span
	dataCopies = dataSpan + ring.SpanSize
)

// maxInterval keeps the products of the program within 64 bits: a random number of 32 bits times the interval.
const maxInterval = 1 << 31

const (
	bpfProgKprobe = 2

	bpfAtomicAdd = 0xdb

	bpfProbeReadString = 114 // bpf_probe_read_user_str: up to a zero byte
)

// probeCode is the program of an event as it is written.
type probeCode struct{ *bpf.Code }

// probeProgram makes the program of a probe. r6 are the registers of the thread, r7 the counts, r8 the hit's amount.
func probeProgram(e *Event, number int, cpu *arch.CPU, counts, buffers, output int) *probeCode {
	c, layout := &probeCode{bpf.New()}, &cpu.Probe
	size := e.dataSize()
	data := -size // the offset of the data on the stack
	lot := data + dataCopies + e.size()
	c.Mov(bpf.R6, bpf.R1)
	c.Value(bpf.R7, counts)
	c.Load(bpf.Load64, bpf.R1, bpf.R7, countPaused)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "end")
	if e.Pairing != nil {
		c.endOfCall(e.Pairing, cpu, data)
	} else {
		c.hitAmount(e, layout)
	}
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Op(bpfAtomicAdd, bpf.R7, bpf.R1, countHits, 0)
	c.Op(bpfAtomicAdd, bpf.R7, bpf.R8, countAmount, 0)
	c.Store(bpf.R10, data+dataOwn, bpf.R8)
	if e.Buffer != NoBuffer {
		c.ofBuffer(e, layout, buffers, lot, data)
	}
	c.Load(bpf.Load64, bpf.R9, bpf.R7, countInterval)
	c.Jump(bpf.JumpGe, bpf.R8, bpf.R9, 0, "take")
	c.chance()
	c.Mov(bpf.R8, bpf.R9)
	c.Label("take")
	c.Store(bpf.R10, data+dataAmount, bpf.R8)
	c.Imm(bpf.MovImm, bpf.R1, number)
	c.Store(bpf.R10, data+dataNumber, bpf.R1)
	if e.Pairing != nil {
		c.keep(e.Pairing, data)
	} else {
		for at := data + dataCopies; at < lot; at += 8 {
			c.Zero(bpf.R10, at)
		}
	}
	at := dataCopies
	for i := range e.Copies {
		c.copy(&e.Copies[i], layout, data+at)
		at += e.Copies[i].Size
	}
	e.spans.Read(c.Code, data+dataSpan)
	c.Output(output, data, size)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	if e.Retired != nil { // a hit that only reports its buffer is no sample
		c.Load(bpf.Load64, bpf.R1, bpf.R10, lot+lotSort)
		c.Jump(bpf.JumpEqImm, bpf.R1, 0, int(look.HitWithoutSample), "end")
	}
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Op(bpfAtomicAdd, bpf.R7, bpf.R1, countMissed, 0)
	c.Label("end")
	c.Imm(bpf.MovImm, bpf.R0, 0)
	c.Op(bpf.Exit, 0, 0, 0, 0)
	return c
}

// hitAmount puts the hit's amount into r8. It ends the program if the hit does not count.
func (c *probeCode) hitAmount(e *Event, layout *arch.ProbeLayout) {
	if e.Given > 0 {
		c.Load(bpf.Load64, bpf.R1, bpf.R6, layout.Arg(e.Given))
		c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "end")
	}
	c.Imm(bpf.MovImm, bpf.R8, 1)
	if e.Amount > 0 {
		c.Load(bpf.Load64, bpf.R8, bpf.R6, layout.Arg(e.Amount))
	}
	if e.Times > 0 {
		c.Load(bpf.Load64, bpf.R1, bpf.R6, layout.Arg(e.Times))
		c.Op(bpf.Mul, bpf.R8, bpf.R1, 0, 0)
	}
}

// chance makes the hit a sample with a probability of r8 / r9, and ends the program otherwise. r8 is smaller than r9.
func (c *probeCode) chance() {
	c.Call(bpf.Random)
	c.Op(bpf.Mul, bpf.R0, bpf.R9, 0, 0)
	c.Mov(bpf.R1, bpf.R8)
	c.Imm(bpf.LeftImm, bpf.R1, 32)
	c.Jump(bpf.JumpGe, bpf.R0, bpf.R1, 0, "end")
}

// copy reads a piece of memory to a place on the stack.
func (c *probeCode) copy(p *Copy, layout *arch.ProbeLayout, to int) {
	if p.From > 0 {
		c.Load(bpf.Load64, bpf.R3, bpf.R6, layout.Arg(p.From))
	} else {
		c.Load(bpf.Load64, bpf.R3, bpf.R10, to-p.Before)
	}
	if p.Off != 0 {
		c.Imm(bpf.AddImm, bpf.R3, p.Off)
	}
	c.Mov(bpf.R1, bpf.R10)
	c.Imm(bpf.AddImm, bpf.R1, to)
	c.Imm(bpf.MovImm, bpf.R2, p.Size)
	if p.Text {
		c.Call(bpfProbeReadString)
	} else {
		c.Call(bpf.ProbeReadUser)
	}
}
