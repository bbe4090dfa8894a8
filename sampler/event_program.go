//go:build linux

package sampler

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler/look"
)

// The program of one event's probes. The program counts the hit, decides whether the hit becomes a sample, and reads
// what is wanted into its own stack. It gives these bytes to bpf_perf_event_output. The kernel then writes a record
// into the ring of the CPU: these bytes, the registers and the stack of the thread (kernel/trace/bpf_trace.c; the event
// behind the ring says what a record has). The program returns 0, so the probe's own event writes nothing.

// eventCounts is what a program shares with us: the one value of a BPF map, which we have mapped into our memory.
type eventCounts struct {
	Hits, Amount uint64 // of all hits
	Interval     uint64 // for us to change
	Missed       uint64 // the kernel had no room in the ring
	Paused       uint64 // for us to set: while set, no hit counts
}

// Their offsets.
const (
	countHits     = 0
	countAmount   = 8
	countInterval = 16
	countMissed   = 24
	countPaused   = 32
	countsSize    = 4096 // the least that can be mapped
)

// What stands before the copies in a record.
const (
	dataNumber = 0  // of the event + 1
	dataAmount = 8  // that the sample stands for
	dataOwn    = 16 // the amount of the hit itself
	dataCopies = 24
)

// maxInterval keeps the products of the program within 64 bits: a random number of 32 bits times the interval.
const maxInterval = 1 << 31

const (
	bpfProgKprobe   = 2
	bpfMapPerfArray = 4
	bpfUpdateElem   = 2

	bpfMapFD     = 1 // of bpfLoadWide: a map
	bpfAtomicAdd = 0xdb
	bpfMul       = 0x2f

	bpfRandom          = 7   // bpf_get_prandom_u32
	bpfPerfOutput      = 25  // bpf_perf_event_output(ctx, map, flags, data, size)
	bpfProbeReadString = 114 // bpf_probe_read_user_str: up to a zero byte
	bpfThisCPU         = 0xffffffff
)

// probeProgram writes the program. r6 is the registers of the thread, r7 the counts, r8 the hit's amount.
func probeProgram(e *Event, number int, layout *arch.ProbeLayout, counts, buffers, output int) *bpfCode {
	c := &bpfCode{jumps: map[string][]int{}}
	size := e.dataSize()
	data := -size // on the stack
	lot := data + dataCopies + e.size()
	c.mov(r6, r1)
	c.value(r7, counts)
	c.load(bpfLoad64, r1, r7, countPaused)
	c.jump(bpfJumpNeImm, r1, 0, 0, "end")
	c.hitAmount(e, layout)
	c.imm(bpfMovImm, r1, 1)
	c.op(bpfAtomicAdd, r7, r1, countHits, 0)
	c.op(bpfAtomicAdd, r7, r8, countAmount, 0)
	c.store(r10, data+dataOwn, r8)
	if e.Buffer != NoBuffer {
		c.ofBuffer(e, layout, buffers, lot, data)
	}
	c.load(bpfLoad64, r9, r7, countInterval)
	c.jump(bpfJumpGe, r8, r9, 0, "take")
	c.chance()
	c.mov(r8, r9)
	c.label("take")
	c.store(r10, data+dataAmount, r8)
	c.imm(bpfMovImm, r1, number)
	c.store(r10, data+dataNumber, r1)
	for at := data + dataCopies; at < lot; at += 8 {
		c.zero(r10, at)
	}
	at := dataCopies
	for i := range e.Copies {
		c.copy(&e.Copies[i], layout, data+at)
		at += e.Copies[i].Size
	}
	c.mov(r1, r6)
	c.mapFD(r2, output)
	c.loadWide(r3, bpfThisCPU)
	c.mov(r4, r10)
	c.imm(bpfAddImm, r4, data)
	c.imm(bpfMovImm, r5, size)
	c.call(bpfPerfOutput)
	c.jump(bpfJumpEqImm, r0, 0, 0, "end")
	if e.Retired != nil { // a hit that was to be told only is no sample
		c.load(bpfLoad64, r1, r10, lot+lotSort)
		c.jump(bpfJumpEqImm, r1, 0, int(look.HitTold), "end")
	}
	c.imm(bpfMovImm, r1, 1)
	c.op(bpfAtomicAdd, r7, r1, countMissed, 0)
	c.label("end")
	c.imm(bpfMovImm, r0, 0)
	c.op(bpfExit, 0, 0, 0, 0)
	return c
}

// hitAmount puts the hit's amount into r8. It ends the program where the hit does not count.
func (c *bpfCode) hitAmount(e *Event, layout *arch.ProbeLayout) {
	if e.Given > 0 {
		c.load(bpfLoad64, r1, r6, layout.Arg(e.Given))
		c.jump(bpfJumpEqImm, r1, 0, 0, "end")
	}
	c.imm(bpfMovImm, r8, 1)
	if e.Amount > 0 {
		c.load(bpfLoad64, r8, r6, layout.Arg(e.Amount))
	}
	if e.Times > 0 {
		c.load(bpfLoad64, r1, r6, layout.Arg(e.Times))
		c.op(bpfMul, r8, r1, 0, 0)
	}
}

// chance draws whether the hit becomes a sample, with a probability of r8 / r9, and ends the program if not. r8 is
// smaller than r9.
func (c *bpfCode) chance() {
	c.call(bpfRandom)
	c.op(bpfMul, r0, r9, 0, 0)
	c.mov(r1, r8)
	c.imm(bpfLeftImm, r1, 32)
	c.jump(bpfJumpGe, r0, r1, 0, "end")
}

// copy reads a piece of memory to a place on the stack.
func (c *bpfCode) copy(p *Copy, layout *arch.ProbeLayout, to int) {
	if p.From > 0 {
		c.load(bpfLoad64, r3, r6, layout.Arg(p.From))
	} else {
		c.load(bpfLoad64, r3, r10, to-p.Before)
	}
	if p.Off != 0 {
		c.imm(bpfAddImm, r3, p.Off)
	}
	c.mov(r1, r10)
	c.imm(bpfAddImm, r1, to)
	c.imm(bpfMovImm, r2, p.Size)
	if p.Text {
		c.call(bpfProbeReadString)
	} else {
		c.call(bpfProbeReadUser)
	}
}

// mapFD loads the map behind a descriptor.
func (c *bpfCode) mapFD(dst bpfReg, fd int) {
	c.op(bpfLoadWide, dst, bpfMapFD, 0, int64(fd))
	c.op(0, 0, 0, 0, 0)
}

// perfArray makes the map that leads a program to the ring of its CPU.
func perfArray(cpus []int, fds []int) (int, error) {
	most := 0
	for _, cpu := range cpus {
		most = max(most, cpu+1)
	}
	fd, err := bpfNewMap(bpfMapPerfArray, 4, 4, most)
	if err != nil {
		return -1, err
	}
	for i, cpu := range cpus {
		if err := setElement(fd, uint32(cpu), uint32(fds[i])); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}

// setElement puts a value into a map. The kernel gets the addresses of things on the heap only: Go's stacks move.
func setElement(fd int, key, value uint32) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	pair := &[2]uint32{key, value}
	pin.Pin(pair)
	attr := struct {
		fd, _             uint32
		key, value, flags uint64
	}{fd: uint32(fd)}
	attr.key, attr.value = uint64(uintptr(unsafe.Pointer(&pair[0]))), uint64(uintptr(unsafe.Pointer(&pair[1])))
	_, err := bpf(bpfUpdateElem, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}
