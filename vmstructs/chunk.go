package vmstructs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"

	"goprof/process"
)

// ErrChunk: the fields of a stack chunk contradict each other.
var ErrChunk = fmt.Errorf("%w: a stack chunk", ErrBadThread)

// chunkHeadBytes is the number of bytes of a StackChunk that are read: its fields, which come before the stack.
const chunkHeadBytes = 128

// chunkHead has the fields of a chunk or a Continuation, as they were read.
type chunkHead struct {
	addr uint64
	n    int
	raw  [chunkHeadBytes]byte
}

const maxChunkWords = 1 << 27

// readChunks copies the stack of the Continuation at cont. The copy is only valid if unchanged returns true afterwards.
func (c *Continuations) readChunks(cont uint64, k *process.Continuation) error {
	c.ranges, c.nHeads = c.ranges[:0], 0
	c.tail = chunkHead{addr: cont}
	at, err := c.tailOf(&c.tail)
	if err != nil {
		return err
	}
	left := maxChunkBytes
	for at != 0 {
		if c.nHeads >= maxChunks {
			return fmt.Errorf("%w: of very many", ErrChunk)
		}
		h := &c.heads[c.nHeads]
		if at, err = c.readChunk(at, h, k, &left); err != nil {
			return err
		}
		c.nHeads++
	}
	return nil
}

// errNotCopied: the copies from the pause lack an object.
var errNotCopied = fmt.Errorf("%w: not copied", ErrChunk)

// heapBytes reads from the heap, or from the copies that were made together with the stack.
func (c *Continuations) heapBytes(addr uint64, b []byte) error {
	switch {
	case c.copied == nil:
		return c.vm.mem.Bytes(addr, b)
	case c.copied.Read(addr, b):
		return nil
	}
	return errNotCopied
}

// Trail describes how a thread's chunks and its virtual thread can be copied together with its stack. This is not known
// before the first chunk has been read.
func (c *Continuations) Trail(t *process.Trail) {
	from, size := c.vm.Side()
	if c.cont.klass == 0 || c.virtual.klass == 0 || size == 0 {
		return
	}
	heap := &c.vm.java.heap
	*t = process.Trail{
		Known: true,
		Frame: int(c.entry - from),
		Owner: entryCont, OwnerSize: int(max(c.cont.span, klassBytes)), First: int(c.cont.tail),
		ObjectSize: int(max(c.virtual.span, klassBytes)),
		Narrow:     heap.narrow, Base: heap.base, Left: uint8(heap.shift), Right: uint8(c.colours.shift),
	}
	f := &c.chunk
	if f.klass == 0 || f.start > process.MaxTrailHead {
		return
	}
	t.HeadSize, t.Next, t.Below = int(f.start), int(f.parent), process.ChunkHead
	t.Begin, t.End = int(f.sp), int(f.bottom)
	if f.bottom == 0 {
		t.End, t.Less = int(f.size), int(f.argsize)
	}
}

// tailOf returns the last chunk of the Continuation at cont.
func (c *Continuations) tailOf(h *chunkHead) (uint64, error) {
	if h.addr == 0 || h.addr%8 != 0 {
		return 0, errKind
	}
	if err := c.readHead(h, &c.cont.klass, &c.cont.span, c.findContinuation); err != nil {
		return 0, err
	}
	return c.vm.oopIn(h.raw[:], c.cont.tail)
}

// readHead reads the fields of an object. If the object's class is not *klass, find finds the fields of that class, and
// the number of bytes that they take.
func (c *Continuations) readHead(h *chunkHead, klass, size *uint64, find func(klass uint64) error) error {
	for range 2 {
		h.n = int(max(*size, klassBytes))
		if err := c.heapBytes(h.addr, h.raw[:h.n]); err != nil {
			return c.vm.moved(err)
		}
		now := c.klasses.klassIn(h.raw[:])
		if *klass != 0 && now == *klass {
			return nil
		}
		if err := find(now); err != nil {
			return c.vm.moved(err)
		}
	}
	return c.vm.moved(errKind) // another object has this address now
}

const (
	classContinuation = "jdk/internal/vm/Continuation"
	classChunk        = "jdk/internal/vm/StackChunk"
)

// findContinuation finds the fields of Continuation. klass is Continuation or a subclass.
func (c *Continuations) findContinuation(klass uint64) error {
	class, err := c.class(klass, classContinuation)
	if err != nil {
		return err
	}
	f := contFields{klass: klass, tail: class.fields["tail"]}
	f.span = f.tail + 8
	if f.tail == 0 || f.span > chunkHeadBytes {
		return fmt.Errorf("%w: fields of Continuation", ErrMissing)
	}
	c.cont = f
	return nil
}

// FindClasses finds the classes that Trail needs among all loaded classes. That takes some microseconds for each class.
// Without FindClasses, goprof learns these classes from the first virtual threads.
func (c *Continuations) FindClasses() error {
	if err := c.prepare(); err != nil {
		return err
	}
	s := search{c: c}
	found, err := s.findKlasses(classContinuation, classChunk, classVirtual)
	if err != nil {
		return err
	}
	return cmp.Or(c.findContinuation(found[classContinuation]), c.findChunk(found[classChunk]),
		c.findVirtual(found[classVirtual]))
}

// readChunk copies the frames of the chunk at addr, and returns its parent.
func (c *Continuations) readChunk(addr uint64, h *chunkHead, k *process.Continuation, left *int) (parent uint64,
	err error) {
	if addr%8 != 0 {
		return 0, ErrChunk
	}
	f := &c.chunk
	h.addr = addr
	if err := c.readHead(h, &f.klass, &f.start, c.findChunk); err != nil {
		return 0, err
	}
	if parent, err = c.vm.oopIn(h.raw[:], f.parent); err != nil {
		return 0, err
	}
	size, sp, bottom := c.bounds(h)
	if size < 0 || size > maxChunkWords || sp < 0 || sp > size || bottom < 0 || bottom > size {
		return 0, fmt.Errorf("%w: size %d, sp %d, bottom %d", ErrChunk, size, sp, bottom)
	}
	if sp >= bottom {
		return parent, nil // empty, but kept for the next freeze
	}
	n := (bottom-sp)*8 + process.ChunkHead
	if *left -= n; sp < process.ChunkHead/8 || *left < 0 {
		return 0, fmt.Errorf("%w: size %d, sp %d, bottom %d", ErrChunk, size, sp, bottom)
	}
	top := addr + f.start + uint64(sp)*8
	chunk := k.Add(top, n)
	if err := c.heapBytes(top-process.ChunkHead, chunk.Stack); err != nil {
		return 0, c.vm.moved(err)
	}
	return parent, nil
}

// bounds returns a chunk's fields, in words from the beginning of its stack.
func (c *Continuations) bounds(h *chunkHead) (size, sp, bottom int) {
	f := &c.chunk
	field := func(at uint64) int { return int(int32(binary.LittleEndian.Uint32(h.raw[at:]))) }
	size, sp = field(f.size), field(f.sp)
	if f.bottom != 0 {
		return size, sp, field(f.bottom)
	}
	return size, sp, size - field(f.argsize)
}

// findChunk finds the fields of StackChunk. The stack follows the fields. It begins at the size that an instance
// without a stack would have (oops/instanceStackChunkKlass.hpp).
func (c *Continuations) findChunk(klass uint64) error {
	class, err := c.class(klass, classChunk)
	if err != nil {
		return err
	}
	f := chunkFields{klass: klass, start: class.size, parent: class.fields["parent"], size: class.fields["size"],
		sp: class.fields["sp"], bottom: class.fields["bottom"], argsize: class.fields["argsize"]}
	ends := max(f.parent, f.size, f.sp, f.bottom, f.argsize) + 4
	if !c.vm.java.heap.narrow {
		ends = max(ends, f.parent+8)
	}
	// STACKCHUNK_INJECTED_FIELDS (runtime/continuationJavaClasses.hpp): cont, flags, pc, maxThawingSize, since 24
	// lockStackSize, since 26 two more.
	if added, err := c.vm.injectedIn(klass); err == nil && len(added) > 4 {
		if flags, locks := uint64(added[1].offset), uint64(added[4].offset); max(flags, locks) < f.start {
			f.flags, f.locks = flags, locks
		}
	}
	if f.parent == 0 || f.size == 0 || f.sp == 0 || f.bottom == 0 && f.argsize == 0 || ends > f.start ||
		f.start > chunkHeadBytes {
		return fmt.Errorf("%w: fields of StackChunk", ErrMissing)
	}
	c.chunk = f
	return nil
}

// unchanged reads two things again, with one call: the other ranges, and everything that readChunks has read except the
// frames. It reports whether all could be read and the chunks are the same.
func (c *Continuations) unchanged(others ...process.Range) bool {
	c.ranges = append(c.ranges[:0], others...)
	tail := c.tailAgain[:]
	c.ranges = append(c.ranges, process.Range{Addr: c.tail.addr, Buf: tail[:c.tail.n:c.tail.n]})
	for i := range c.nHeads {
		h := &c.heads[i]
		c.ranges = append(c.ranges, process.Range{Addr: h.addr, Buf: c.again[i*chunkHeadBytes:][:h.n:h.n]})
	}
	c.vm.t.ReadMany(c.ranges)
	for i := range c.ranges {
		if !c.ranges[i].OK {
			return false
		}
	}
	for i := range c.nHeads {
		if h := &c.heads[i]; !c.sameHead(h, c.ranges[len(others)+1+i].Buf) {
			return false
		}
	}
	was, err1 := c.vm.oopIn(c.tail.raw[:], c.cont.tail)
	now, err2 := c.vm.oopIn(tail, c.cont.tail)
	return err1 == nil && err2 == nil && was == now
}

// sameFrames is unchanged for a thread that had no carrier when readChunks began. It also compares the frames, because
// a carrier may have run the thread since then, up to a point at which its chunks have the same fields.
func (c *Continuations) sameFrames() bool {
	chunks := c.heap.Chunks
	again := make([]process.Range, len(chunks))
	for i := range chunks {
		again[i] = process.Range{Addr: chunks[i].SP - process.ChunkHead, Buf: make([]byte, len(chunks[i].Stack))}
	}
	if !c.unchanged(again...) {
		return false
	}
	for i := range chunks {
		if !bytes.Equal(again[i].Buf, chunks[i].Stack) {
			return false
		}
	}
	return true
}

// sameHead compares the fields of a chunk. Flags and mark may differ.
func (c *Continuations) sameHead(h *chunkHead, raw []byte) bool {
	now := chunkHead{n: h.n}
	copy(now.raw[:], raw)
	s1, p1, b1 := c.bounds(h)
	s2, p2, b2 := c.bounds(&now)
	return s1 == s2 && p1 == p2 && b1 == b2 && c.klasses.klassIn(h.raw[:]) == c.klasses.klassIn(now.raw[:])
}

// Bits of a chunk's flags (oops/stackChunkOop.hpp).
const (
	chunkGC     = 1 << 3 // a collector has seen the chunk: references have the same form as in other objects
	chunkBitmap = 1 << 4 // references are narrow if those of the heap are
	chunkLocks  = 1 << 5 // it holds a LockStack
)

// lockStack returns the objects that a virtual thread has locked. Its chunks must have just been read. When the thread
// gives up its carrier, the JVM moves the LockStack to the beginning of the last chunk's stack
// (FreezeBase::freeze_lockstack).
func (c *Continuations) lockStack(k *Locks) (objects []uint64) {
	f, h := &c.chunk, &c.heads[0]
	if f.locks == 0 || c.nHeads == 0 {
		return nil
	}
	flags, n := h.raw[f.flags], min(int(h.raw[f.locks]), maxLockStack)
	refs := make([]byte, 8*n)
	if flags&chunkLocks == 0 || c.vm.mem.Bytes(h.addr+f.start, refs) != nil {
		return nil
	}
	for ; len(refs) > 0; refs = refs[8:] {
		object, ok := k.root(word(refs))
		if flags&chunkGC != 0 && (flags&chunkBitmap != 0 || !k.vm.java.heap.narrow) {
			var err error
			object, err = k.oopIn(refs, 0)
			ok = err == nil
		}
		var head [klassBytes]byte
		if ok && object != 0 && k.vm.mem.Bytes(object, head[:]) == nil && k.forwarded(&object, head[:]) != nil {
			objects = append(objects, object&k.mask)
		}
	}
	return objects
}
