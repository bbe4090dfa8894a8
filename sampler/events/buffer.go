//go:build linux

package events

import (
	"goprof/arch"
	"goprof/sampler/bpf"
	"goprof/sampler/look"
)

// Sampling allocations at the ends of buffers.
//
// HotSpot's threads allocate from buffers of their own (TLABs), and only two events can be probed. If an object does
// not fit into the thread's buffer, the thread gets a new buffer. If too much of the old buffer is free to throw it
// away, the object is allocated outside (gc/shared/memAllocator.cpp, allocate_inside_tlab_slow). An object that causes
// a new buffer stands for the bytes of a buffer, and most objects that are allocated outside are larger. So if each hit
// stood for its own amount, small objects would have too much and large ones too little. With buffers of 20 KB and
// objects of 1 KB, the error would be fourteen times that of a perfect sampler.
//
// Imagine all objects that a thread allocates in a row. The first object that does not fit into a buffer covers the
// point where the buffer ends. That point does not depend on the object, so the object is chosen with a probability in
// proportion to its size: a perfect sample. It stands for the bytes between two such points, without its own size. Its
// own size counts for the next sample, because the bytes that a sample stands for must not depend on its own size.
// Later objects that do not fit into the same buffer are chosen by their size, so they are no samples. Their bytes
// count for the next sample, too. An object that is as large as a buffer counts for itself alone.
//
// A sample stands for the buffer that begins there, not for the one that ends. So a thread that has a single buffer has
// a sample. If the object is allocated outside, the size of the next buffer is not known yet. Then goprof takes the
// size of the one that ends, and adds the difference to the next sample.
//
// A collection takes buffers away. The next object gets a new buffer whatever its size, and counts like an object that
// did not fit.
//
// A program that repeats itself breaks the assumption that a buffer's end does not depend on the object there. The
// object at the end of one buffer begins the next buffer, so the place moves in step with the program, and some classes
// are hardly ever met. Therefore goprof reads the contents of a buffer when its thread has left it (contents.go):
// samples say where objects of a class are allocated, and the contents say how many bytes the class has.

// BufferHit says what a hit of an event does to its thread's buffer.
type BufferHit uint8

const (
	NoBuffer      BufferHit = iota
	NewBuffer               // the thread gets a buffer of the hit's amount
	OutsideBuffer           // an object of the hit's amount is put outside of the buffer
)

// The fields that the program keeps for each thread.
const (
	bufferOwed   = 0  // bytes for the next sample; below 0: the samples before have counted too many
	bufferSize   = 8  // the buffer's size without the object for which it was made; 0: not known
	bufferPast   = 16 // not 0: an object did not fit into this buffer
	bufferBegin  = 24 // the buffer's beginning
	bufferWhole  = 32 // the buffer's size
	bufferMoment = 40 // the count of collections when the thread got the buffer
	bufferCount  = 48 // the thread's count of allocated bytes at that time
	bufferBeside = 56 // bytes that the thread has allocated outside of buffers since then
	bufferState  = 64
	bufferKey    = 8
	// mostBuffered is how many threads are kept. Beyond that, the kernel drops those that have not allocated for
	// longest.
	mostBuffered = 1 << 13

	bpfMapLRUHash   = 9
	bpfUpdateAlways = 0
	bpfJumpEq       = 0x1d
	bpfJumpSLeImm   = 0xd5 // signed
)

func bufferMap() (int, error) { return bpf.NewMap(bpfMapLRUHash, bufferKey, bufferState, mostBuffered) }

// The words behind the copies of a hit about buffers.
const (
	lotChance = 0  // the hit counts dataAmount / this times; 0: once
	lotSort   = 8  // a look.HitSort
	lotBegin  = 16 // the buffer that the thread has left; 0: a collection took it, or there was none
	lotWhole  = 24 // its size; 0: there was none
	lotUsed   = 32 // how much of it was used
	lotMoment = 40 // the count of collections
	lotSize   = 48
)

// ofBuffer reads the hit's own amount in r8, and replaces it with the amount that the hit may stand for. A hit that is
// no sample may still be reported, for the buffer that its thread has left. goprof draws these hits by lot, in
// proportion to their amount, and each then counts for several. If nothing is to be reported, the program ends. lot is
// the place of the words about the buffer on the program's stack. Below the offset below, the stack is free.
func (c *probeCode) ofBuffer(e *Event, layout *arch.ProbeLayout, buffers, lot, below int) {
	none := "end"
	if e.Retired != nil {
		none = "told"
		c.readMoment(e, layout, lot)
	}
	c.threadState(buffers, below)
	if e.Retired != nil {
		c.retire(e, layout, lot)
	}
	c.Load(bpf.Load64, bpf.R1, bpf.R0, bufferOwed)
	c.Load(bpf.Load64, bpf.R2, bpf.R0, bufferPast)
	c.Load(bpf.Load64, bpf.R3, bpf.R0, bufferSize)
	if e.Buffer == NewBuffer {
		c.Load(bpf.Load64, bpf.R4, bpf.R6, layout.Arg(e.Object)) // the size of the object
		c.Op(bpf.Sub, bpf.R8, bpf.R4, 0, 0)
		c.Store(bpf.R0, bufferSize, bpf.R8)
		c.Zero(bpf.R0, bufferPast)
		c.Op(bpf.Add, bpf.R1, bpf.R8, 0, 0)
		c.Jump(bpf.JumpEqImm, bpf.R2, 0, 0, "first")
		c.Op(bpf.Sub, bpf.R1, bpf.R3, 0, 0)
		c.Op(bpf.Add, bpf.R1, bpf.R4, 0, 0)
	} else {
		c.Jump(bpf.JumpGe, bpf.R8, bpf.R3, 0, "alone")
		c.Mov(bpf.R4, bpf.R8)
		c.Imm(bpf.MovImm, bpf.R5, 1)
		c.Store(bpf.R0, bufferPast, bpf.R5)
		c.Op(bpf.Add, bpf.R1, bpf.R3, 0, 0)
		c.Jump(bpf.JumpEqImm, bpf.R2, 0, 0, "first")
		c.Op(bpf.Sub, bpf.R1, bpf.R3, 0, 0)
		c.Op(bpf.Add, bpf.R1, bpf.R4, 0, 0)
	}
	c.Store(bpf.R0, bufferOwed, bpf.R1)
	c.Jump(bpf.Goto, 0, 0, 0, none)
	c.Label("first")
	c.Store(bpf.R0, bufferOwed, bpf.R4)
	c.Jump(bpfJumpSLeImm, bpf.R1, 0, 0, none)
	c.Mov(bpf.R8, bpf.R1)
	if e.Retired == nil {
		c.Label("alone")
		return
	}
	c.Jump(bpf.Goto, 0, 0, 0, "lot")
	c.Label("told")
	c.sort(lot, look.HitWithoutSample)
	c.Jump(bpf.Goto, 0, 0, 0, "lot")
	c.Label("alone")
	c.sort(lot, look.HitAlone)
	c.Label("lot")
	c.Store(bpf.R10, lot+lotChance, bpf.R8)
}

func (c *probeCode) sort(lot int, s look.HitSort) {
	c.Imm(bpf.MovImm, bpf.R1, int(s))
	c.Store(bpf.R10, lot+lotSort, bpf.R1)
}

// readMoment clears the words about the buffer, and reads the counts of this moment. If memory cannot be read, the
// words stay 0, and no buffer counts as known.
func (c *probeCode) readMoment(e *Event, layout *arch.ProbeLayout, lot int) {
	for at := 0; at < lotSize; at += 8 {
		c.Zero(bpf.R10, lot+at)
	}
	if e.Buffer != NewBuffer {
		return
	}
	c.LoadWide(bpf.R3, e.Retired.Moment)
	c.readUser(lot+lotMoment, momentSize)
	c.Load(bpf.Load64, bpf.R3, bpf.R6, layout.Arg(e.Retired.Thread))
	c.Imm(bpf.AddImm, bpf.R3, e.Retired.Allocated)
	c.readUser(lot+lotUsed, 8)
}

// momentSize is the size of HotSpot's count of collections (gc/shared/collectedHeap.hpp, _total_collections).
const momentSize = 4

// readUser reads the memory at r3 to a place on the stack.
func (c *probeCode) readUser(to, size int) {
	c.stackAt(bpf.R1, to)
	c.Imm(bpf.MovImm, bpf.R2, size)
	c.Call(bpf.ProbeReadUser)
}

// retire copies the state's facts about the buffer that the thread has left to the place lot, and notes the new buffer
// in the state. r0 is the state. For an object outside of buffers, retire only adds the object's bytes to bufferBeside.
func (c *probeCode) retire(e *Event, layout *arch.ProbeLayout, lot int) {
	if e.Buffer != NewBuffer {
		c.Load(bpf.Load64, bpf.R1, bpf.R0, bufferBeside)
		c.Op(bpf.Add, bpf.R1, bpf.R8, 0, 0)
		c.Store(bpf.R0, bufferBeside, bpf.R1)
		return
	}
	c.Load(bpf.Load64, bpf.R1, bpf.R0, bufferMoment)
	c.Load(bpf.Load64, bpf.R2, bpf.R10, lot+lotMoment)
	c.Load(bpf.Load64, bpf.R3, bpf.R0, bufferBegin)
	c.Jump(bpfJumpEq, bpf.R1, bpf.R2, 0, "same moment")
	c.Imm(bpf.MovImm, bpf.R3, 0)
	c.Label("same moment")
	c.Store(bpf.R10, lot+lotBegin, bpf.R3)
	c.Load(bpf.Load64, bpf.R3, bpf.R0, bufferWhole)
	c.Store(bpf.R10, lot+lotWhole, bpf.R3)
	c.Load(bpf.Load64, bpf.R4, bpf.R10, lot+lotUsed) // the thread's count
	c.Mov(bpf.R3, bpf.R4)
	for _, known := range []int{bufferCount, bufferBeside} {
		c.Load(bpf.Load64, bpf.R1, bpf.R0, known)
		c.Op(bpf.Sub, bpf.R3, bpf.R1, 0, 0)
	}
	c.Store(bpf.R10, lot+lotUsed, bpf.R3)
	c.Load(bpf.Load64, bpf.R1, bpf.R6, layout.Arg(e.Retired.At))
	c.Store(bpf.R0, bufferBegin, bpf.R1)
	c.Store(bpf.R0, bufferWhole, bpf.R8)
	c.Store(bpf.R0, bufferMoment, bpf.R2)
	c.Store(bpf.R0, bufferCount, bpf.R4)
	c.Zero(bpf.R0, bufferBeside)
}

// threadState puts the address of the state of the thread into r0. Without a state a hit counts for itself.
func (c *probeCode) threadState(buffers, below int) {
	key, state := below-bufferKey, below-bufferKey-bufferState
	c.Call(bpf.GetCurrentPIDTGID)
	c.Store(bpf.R10, key, bpf.R0)
	c.lookUp(buffers, key)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "known")
	for at := 0; at < bufferState; at += 8 {
		c.Zero(bpf.R10, state+at)
	}
	c.MapFD(bpf.R1, buffers)
	c.stackAt(bpf.R2, key)
	c.stackAt(bpf.R3, state)
	c.Imm(bpf.MovImm, bpf.R4, bpfUpdateAlways)
	c.Call(bpf.MapUpdate)
	c.lookUp(buffers, key)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "alone")
	c.Label("known")
}

// lookUp puts the address of a thread's state into r0, 0 if there is none.
func (c *probeCode) lookUp(buffers, key int) {
	c.MapFD(bpf.R1, buffers)
	c.stackAt(bpf.R2, key)
	c.Call(bpf.MapLookup)
}

// stackAt loads the address of a place on the stack.
func (c *probeCode) stackAt(dst bpf.Reg, at int) {
	c.Mov(dst, bpf.R10)
	c.Imm(bpf.AddImm, dst, at)
}
