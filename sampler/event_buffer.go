//go:build linux

package sampler

import (
	"goprof/arch"
	"goprof/sampler/look"
)

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
//
// A program that repeats itself breaks the rule that a buffer's end has nothing to do with the object there. The object
// at the end of one buffer begins the next buffer, so the place walks in step with the program, and some classes are
// hardly ever met. Therefore what a buffer held is read when its thread has left it (event_contents.go): samples say
// where objects of a class are allocated, and the contents say how many bytes the class has.

// BufferHit is what a hit of an event has to do with its thread's buffer.
type BufferHit uint8

const (
	NoBuffer      BufferHit = iota
	NewBuffer               // the thread gets a buffer of the hit's amount
	OutsideBuffer           // an object of the hit's amount is put outside of the buffer
)

// What is kept of each thread.
const (
	bufferOwed   = 0  // bytes for the next sample; less than 0: the samples before have had too much
	bufferSize   = 8  // of the buffer, without the object for which it was made; 0: not known
	bufferPast   = 16 // not 0: an object did not fit into this buffer
	bufferBegin  = 24 // where the buffer begins
	bufferWhole  = 32 // its size
	bufferMoment = 40 // how many collections there had been when the thread got the buffer
	bufferCount  = 48 // how many bytes the thread had allocated then, in the buffers before and outside
	bufferBeside = 56 // bytes that the thread has put outside since then
	bufferState  = 64
	bufferKey    = 8
	// mostBuffered is how many threads are kept. If there are more, those go that have not allocated for longest.
	mostBuffered = 1 << 13

	bpfMapLRUHash   = 9
	bpfLookup       = 1 // bpf_map_lookup_elem(map, key): the value's address, or 0
	bpfUpdate       = 2 // bpf_map_update_elem(map, key, value, flags)
	bpfUpdateAlways = 0
	bpfJump         = 0x05
	bpfJumpEq       = 0x1d
	bpfJumpSLeImm   = 0xd5 // signed
)

// bufferMap makes the map of threads.
func bufferMap() (int, error) { return bpfNewMap(bpfMapLRUHash, bufferKey, bufferState, mostBuffered) }

// A hit that tells of buffers has these words behind its copies.
const (
	lotChance = 0  // the amount by which the hit was drawn, if that is less than the interval
	lotSort   = 8  // a look.HitSort
	lotBegin  = 16 // the buffer that the thread has left; 0: a collection has taken it, or there was none
	lotWhole  = 24 // its size; 0: there was none
	lotUsed   = 32 // how much of it was used
	lotMoment = 40 // how many collections there have been
	lotSize   = 48
)

// ofBuffer puts the amount that the hit may stand for into r8, which has the hit's own amount. A hit that is no sample
// may be told nevertheless, by the lot that its amount gives it: what it tells counts for so many hits. If nothing is
// to be told, the program ends. lot is where on the stack the words about the buffer are. The stack below is free.
func (c *bpfCode) ofBuffer(e *Event, layout *arch.ProbeLayout, buffers, lot, below int) {
	none := "end"
	if e.Retired != nil {
		none = "told"
		c.readMoment(e, layout, lot)
	}
	c.threadState(buffers, below)
	if e.Retired != nil {
		c.retire(e, layout, lot)
	}
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
	c.jump(bpfJump, 0, 0, 0, none)
	c.label("first")
	c.store(r0, bufferOwed, r4)
	c.jump(bpfJumpSLeImm, r1, 0, 0, none)
	c.mov(r8, r1)
	if e.Retired == nil {
		c.label("alone")
		return
	}
	c.jump(bpfJump, 0, 0, 0, "lot")
	c.label("told")
	c.sort(lot, look.HitTold)
	c.jump(bpfJump, 0, 0, 0, "lot")
	c.label("alone")
	c.sort(lot, look.HitAlone)
	c.label("lot")
	c.store(r10, lot+lotChance, r8)
}

func (c *bpfCode) sort(lot int, s look.HitSort) {
	c.imm(bpfMovImm, r1, int(s))
	c.store(r10, lot+lotSort, r1)
}

// readMoment clears the words about the buffer and reads what is known only now. Where memory cannot be read, the words
// stay 0, and nobody takes a buffer for known.
func (c *bpfCode) readMoment(e *Event, layout *arch.ProbeLayout, lot int) {
	for at := 0; at < lotSize; at += 8 {
		c.zero(r10, lot+at)
	}
	if e.Buffer != NewBuffer {
		return
	}
	c.loadWide(r3, e.Retired.Moment)
	c.readUser(lot+lotMoment, momentSize)
	c.load(bpfLoad64, r3, r6, layout.Arg(e.Retired.Thread))
	c.imm(bpfAddImm, r3, e.Retired.Allocated)
	c.readUser(lot+lotUsed, 8)
}

// momentSize is the size of HotSpot's count of collections (gc/shared/collectedHeap.hpp, _total_collections).
const momentSize = 4

// readUser reads the memory at r3 to a place on the stack.
func (c *bpfCode) readUser(to, size int) {
	c.stackAt(r1, to)
	c.imm(bpfMovImm, r2, size)
	c.call(bpfProbeReadUser)
}

// retire says of the buffer that the thread has left what the thread's state knows, and notes the new one. r0 is the
// state. For an object outside it counts the object's bytes: they are no bytes of the buffer.
func (c *bpfCode) retire(e *Event, layout *arch.ProbeLayout, lot int) {
	if e.Buffer != NewBuffer {
		c.load(bpfLoad64, r1, r0, bufferBeside)
		c.op(bpfAdd, r1, r8, 0, 0)
		c.store(r0, bufferBeside, r1)
		return
	}
	c.load(bpfLoad64, r1, r0, bufferMoment)
	c.load(bpfLoad64, r2, r10, lot+lotMoment)
	c.load(bpfLoad64, r3, r0, bufferBegin)
	c.jump(bpfJumpEq, r1, r2, 0, "same moment")
	c.imm(bpfMovImm, r3, 0)
	c.label("same moment")
	c.store(r10, lot+lotBegin, r3)
	c.load(bpfLoad64, r3, r0, bufferWhole)
	c.store(r10, lot+lotWhole, r3)
	c.load(bpfLoad64, r4, r10, lot+lotUsed) // the thread's count
	c.mov(r3, r4)
	for _, known := range []int{bufferCount, bufferBeside} {
		c.load(bpfLoad64, r1, r0, known)
		c.op(bpfSub, r3, r1, 0, 0)
	}
	c.store(r10, lot+lotUsed, r3)
	c.load(bpfLoad64, r1, r6, layout.Arg(e.Retired.At))
	c.store(r0, bufferBegin, r1)
	c.store(r0, bufferWhole, r8)
	c.store(r0, bufferMoment, r2)
	c.store(r0, bufferCount, r4)
	c.zero(r0, bufferBeside)
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
