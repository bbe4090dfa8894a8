//go:build linux

package sampler

import "goprof/arch"

// Samples of what is cut from buffers.
//
// HotSpot's threads allocate from buffers of their own (TLABs), and only two events can be probed: a thread gets a
// new buffer, because an object did not fit into the old one; or an object is put outside, because it did not fit and
// the rest of the buffer is too good to be thrown away (gc/shared/memAllocator.cpp, allocate_inside_tlab_slow). An
// object for which there is a new buffer stands for the bytes of a buffer, and most objects that are put outside are
// larger. So if each hit stood for its own amount, small objects would have too much and large ones too little: with
// buffers of 20 KB and objects of 1 KB fourteen times the error of a perfect sampler.
//
// Lay all objects that a thread allocates in a row. The first object that does not fit into a buffer covers the point
// where the buffer ends. Where that point is has nothing to do with the object, so it is an object with a probability
// in proportion to its size: a perfect sample. It stands for as many bytes as lie between such points, its own size
// left out: that comes with the next sample, since what a sample stands for must not depend on what it is. Later
// objects for which there is no room in the same buffer are chosen by their size, and are no samples. Their bytes
// come with the next sample, too. An object that is as large as a buffer counts for itself alone.
//
// A sample stands for the buffer that begins there, not for the one that ends: so a thread that has a single buffer
// has a sample. How large that buffer will be is not known yet if the object is put outside. The one that ends is
// taken, and the difference comes with the next sample.
//
// A collection takes buffers away. The next object gets a new buffer whatever its size, and counts like one that did
// not fit.

// BufferHit is what a hit of an event has to do with its thread's buffer.
type BufferHit uint8

const (
	NoBuffer      BufferHit = iota
	NewBuffer               // the thread gets a buffer of the hit's amount
	OutsideBuffer           // an object of the hit's amount is put outside of the buffer
)

// What is kept of each thread.
const (
	bufferOwed  = 0  // bytes for the next sample; less than 0: the samples before have had too much
	bufferSize  = 8  // of the buffer, without the object for which it was made; 0: not known
	bufferPast  = 16 // not 0: an object did not fit into this buffer
	bufferState = 24
	bufferKey   = 8
	// mostBuffered is how many threads are kept. If there are more, those go that have not allocated for longest.
	mostBuffered = 1 << 13

	bpfMapLRUHash   = 9
	bpfLookup       = 1 // bpf_map_lookup_elem(map, key): the value's address, or 0
	bpfUpdate       = 2 // bpf_map_update_elem(map, key, value, flags)
	bpfUpdateAlways = 0
	bpfJump         = 0x05
	bpfJumpSLeImm   = 0xd5 // signed
)

// bufferMap makes the map of threads.
func bufferMap() (int, error) { return bpfNewMap(bpfMapLRUHash, bufferKey, bufferState, mostBuffered) }

// ofBuffer puts the amount that the hit may stand for into r8, which has the hit's own amount. It ends the program if
// the hit is no sample. The stack below is free.
func (c *bpfCode) ofBuffer(e *Event, layout *arch.ProbeLayout, buffers, below int) {
	c.threadState(buffers, below)
	c.load(bpfLoad64, r1, r0, bufferOwed)
	c.load(bpfLoad64, r2, r0, bufferPast)
	c.load(bpfLoad64, r3, r0, bufferSize)
	if e.Buffer == NewBuffer {
		c.load(bpfLoad64, r4, r6, layout.Arg(e.Object)) // the size of the object
		c.op(bpfSub, r8, r4, 0, 0)
		c.store(r0, bufferSize, r8)
		c.zero(r0, bufferPast)
		c.op(bpfAdd, r1, r8, 0, 0)
		c.jump(bpfJumpEqImm, r2, 0, 0, "first")
		c.op(bpfSub, r1, r3, 0, 0)
		c.op(bpfAdd, r1, r4, 0, 0)
	} else {
		c.jump(bpfJumpGe, r8, r3, 0, "alone")
		c.mov(r4, r8)
		c.imm(bpfMovImm, r5, 1)
		c.store(r0, bufferPast, r5)
		c.op(bpfAdd, r1, r3, 0, 0)
		c.jump(bpfJumpEqImm, r2, 0, 0, "first")
		c.op(bpfSub, r1, r3, 0, 0)
		c.op(bpfAdd, r1, r4, 0, 0)
	}
	c.store(r0, bufferOwed, r1)
	c.jump(bpfJump, 0, 0, 0, "end")
	c.label("first")
	c.store(r0, bufferOwed, r4)
	c.jump(bpfJumpSLeImm, r1, 0, 0, "end")
	c.mov(r8, r1)
	c.label("alone")
}

// threadState puts the address of the state of the thread into r0. Without a state a hit counts for itself.
func (c *bpfCode) threadState(buffers, below int) {
	key, state := below-bufferKey, below-bufferKey-bufferState
	c.call(bpfGetCurrentPIDTGID)
	c.store(r10, key, r0)
	c.lookUp(buffers, key)
	c.jump(bpfJumpNeImm, r0, 0, 0, "known")
	for at := 0; at < bufferState; at += 8 {
		c.zero(r10, state+at)
	}
	c.mapFD(r1, buffers)
	c.stackAt(r2, key)
	c.stackAt(r3, state)
	c.imm(bpfMovImm, r4, bpfUpdateAlways)
	c.call(bpfUpdate)
	c.lookUp(buffers, key)
	c.jump(bpfJumpEqImm, r0, 0, 0, "alone")
	c.label("known")
}

// lookUp puts the address of a thread's state into r0, 0 if there is none.
func (c *bpfCode) lookUp(buffers, key int) {
	c.mapFD(r1, buffers)
	c.stackAt(r2, key)
	c.call(bpfLookup)
}

// stackAt loads the address of a place on the stack.
func (c *bpfCode) stackAt(dst bpfReg, at int) {
	c.mov(dst, r10)
	c.imm(bpfAddImm, dst, at)
}
