package target

import "slices"

// Continuation is what there is of a virtual thread beside its carrier's stack: frames that are
// still in the Java heap, and who it is. It is not read in the pause, but right after the
// thread was let go; so whoever uses it must ask whether it still belongs to the stack.
type Continuation struct {
	// Entry is the address on the carrier's stack of the ContinuationEntry that the thread had in
	// the pause: the frames below that address are the virtual thread's. 0: it ran none.
	Entry uint64
	// ID is Thread.threadId, 0 if it is not known whose the continuation was.
	ID   uint64
	Name string // often empty
	// Chunks hold the frames in the heap, the topmost first.
	Chunks []Chunk
	// Settled: Chunks read the same before and after, and so did what leads to them.
	Settled bool
	// Base is the carrier's stack from BaseAddr to Entry as it was after Chunks had been read.
	Base     []byte
	BaseAddr uint64
}

// Chunk is the used part of one stack chunk.
type Chunk struct {
	// SP is the address of its topmost frame. Two words belong to it below that: where the frame that
	// was above it has returned to, and its frame pointer.
	SP    uint64
	Stack []byte // from SP-ChunkHead to the chunk's end
}

// ChunkHead is how much of a Chunk's copy lies below its SP.
const ChunkHead = 16

// End is the first address above c's frames.
func (c *Chunk) End() uint64 { return c.SP - ChunkHead + uint64(len(c.Stack)) }

// Reset makes c that of a thread without a continuation, and keeps its memory for the next.
func (c *Continuation) Reset() {
	*c = Continuation{Chunks: c.Chunks[:0], Base: c.Base[:0]}
}

// Add appends a chunk of n bytes to be filled in.
func (c *Continuation) Add(sp uint64, n int) *Chunk {
	i := len(c.Chunks)
	if i < cap(c.Chunks) {
		c.Chunks = c.Chunks[:i+1]
	} else {
		c.Chunks = append(c.Chunks, Chunk{})
	}
	chunk := &c.Chunks[i]
	chunk.SP = sp
	chunk.Stack = slices.Grow(chunk.Stack[:0], n)[:n]
	return chunk
}

func (c *Continuation) clone() Continuation {
	d := *c
	d.Base = slices.Clone(c.Base)
	d.Chunks = slices.Clone(c.Chunks)
	for i := range d.Chunks {
		d.Chunks[i].Stack = slices.Clone(d.Chunks[i].Stack)
	}
	return d
}
