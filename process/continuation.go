package process

import "slices"

// Continuation identifies a virtual thread, and has those of its frames that are in the Java heap, not on its carrier's
// stack. With a Trail, the frames were copied together with the stack. Otherwise they were read right after the
// thread's release, and code that uses them must check that they still belong to the stack.
type Continuation struct {
	// Entry is the address of the ContinuationEntry on the carrier's stack during the pause
	// (runtime/continuationEntry.hpp). The frames below that address are the virtual thread's. Entry is 0 if the thread
	// ran no virtual thread.
	Entry uint64
	// Late: Entry was read after the look. It counts only if the copied stack leads to that address.
	Late     bool    // recordings do not keep it
	ID       uint64  // Thread.threadId, 0 if the virtual thread is not known
	Name     string  // often empty
	Chunks   []Chunk // the frames in the heap, the topmost first
	Together bool    // Chunks and Base were copied together with the stack; recordings do not keep it
	Settled  bool    // two reads of Chunks gave the same result
	// Base is the carrier's stack from BaseAddr to Entry. It was copied together with Chunks, or right after they were
	// read.
	Base     []byte
	BaseAddr uint64

	room []byte // the memory for the copies of all chunks
}

// Chunk is the used part of one stack chunk.
type Chunk struct {
	// SP is the address of its topmost frame. The two words below SP also belong to that frame. They are the return
	// address of the frame that was above it, and the frame pointer that this frame had saved.
	SP    uint64
	Stack []byte // from SP-ChunkHead to the chunk's end
}

// ChunkHead is the number of bytes below SP in a Chunk's copy.
const ChunkHead = 16

// End is the first address above c's frames.
func (c *Chunk) End() uint64 { return c.SP - ChunkHead + uint64(len(c.Stack)) }

// keptRoom bounds the memory that a Continuation keeps for the next thread. goprof has hundreds of snapshots.
const keptRoom = 256 << 10

// Reset makes c the Continuation of a thread that runs no virtual thread. It keeps the memory for later use.
func (c *Continuation) Reset() {
	clear(c.Chunks) // they keep old rooms alive
	*c = Continuation{Chunks: c.Chunks[:0], Base: c.Base[:0], room: c.room[:0]}
	if cap(c.room) > keptRoom {
		c.room = nil
	}
}

// Add appends a chunk of n bytes, which the caller fills in.
func (c *Continuation) Add(sp uint64, n int) *Chunk {
	at := len(c.room)
	if cap(c.room)-at < n {
		c.room, at = make([]byte, 0, max(n, 2*min(cap(c.room), keptRoom))), 0 // earlier chunks keep the old room
	}
	c.room = c.room[:at+n]
	c.Chunks = append(c.Chunks, Chunk{sp, c.room[at : at+n : at+n]})
	return &c.Chunks[len(c.Chunks)-1]
}

func (c *Continuation) clone() Continuation {
	d := *c
	d.room = nil
	d.Base = slices.Clone(c.Base)
	d.Chunks = slices.Clone(c.Chunks)
	for i := range d.Chunks {
		d.Chunks[i].Stack = slices.Clone(d.Chunks[i].Stack)
	}
	return d
}
