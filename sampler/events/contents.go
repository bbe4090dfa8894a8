//go:build linux

package events

import (
	"math"
	"math/rand/v2"
	"sync/atomic"

	"goprof/process"
	"goprof/sampler/look"
	"goprof/sampler/ring"
)

// Reading what buffers held.
//
// When a thread gets a new buffer, it has left the old one. The old buffer still has all objects that the thread
// allocated there, in their order, until a collection moves them. The program at the probe knows where the buffer
// began, and how much of it was used: the thread's own count of allocated bytes (Thread::_allocated_bytes) has grown by
// the used part and by the size of the objects outside. goprof copies the buffer right after the hit. The copy counts
// only if there was no collection from when the thread got the buffer until after the copy. HotSpot counts a collection
// before it moves an object (PSScavenge::invoke, G1CollectedHeap::do_collection_pause_at_safepoint,
// SerialHeap::do_collection, VM_ZMarkStart and its like). Shenandoah up to 25 does not count collections. There the
// walk over the copy decides. It fails if an object has the mark of a moved one, or if the objects do not fill the copy
// to the byte.
//
// goprof draws by lot which buffers it copies, so that it reads no more than contentBudget. The chance of each buffer
// is known. So each copied byte stands for a known number of bytes, whatever the program does.

// Retired says how a probe learns of the buffer that a thread has left. Its arguments are given as numbers + 1.
type Retired struct {
	At        int    // the argument with the address of the object: a new buffer begins there
	Thread    int    // the argument with the thread
	Allocated int    // the offset in the thread of its count of allocated bytes
	Moment    uint64 // the address of the count of collections
}

// Unread is the reason why goprof does not know what a buffer held.
type Unread uint8

const (
	UnreadCollected Unread = iota // a collection took the buffer before it was full
	UnreadLate                    // a collection came before the copy was done
	UnreadLarge                   // the buffer is larger than maxContent
	UnreadBusy                    // too many copies wait
	UnreadFailed                  // the memory cannot be read, or the copy cannot be walked
	NumUnread
)

const (
	// contentBudget bounds the bytes that are copied in a second.
	contentBudget = 32 << 20
	// maxContent bounds one buffer. G1's buffers are no larger: half of a region (g1CollectedHeap.cpp,
	// _humongous_object_threshold_in_words).
	maxContent = 16 << 20
	// maxCopies is how many copies may wait. keptCopy is how large the memory of a copy may be to be used again.
	maxCopies = 8
	keptCopy  = 2 << 20
	// firstChance is the share of the buffers that is copied until goprof knows how many there are.
	firstChance = 1.0 / 8
)

// Buffer is what a thread's buffer held.
type Buffer struct {
	TID    int
	Addr   uint64
	Bytes  []byte
	Weight float64 // how many bytes of all buffers each byte stands for
}

// Contents hands over the copies of buffers, and counts.
type Contents struct {
	memory process.Memory
	full   chan *Buffer
	free   chan *Buffer
	held   atomic.Uint64 // a float64: the bytes that all buffers held
	copied atomic.Int64
	bytes  atomic.Int64
	unread [NumUnread]atomic.Int64
}

// NewContents makes a Contents that reads a process's memory.
func NewContents(memory process.Memory) *Contents {
	return &Contents{memory: memory, full: make(chan *Buffer, maxCopies), free: make(chan *Buffer, maxCopies)}
}

// Buffers returns the channel of copied buffers. The receiver gives each back with Done.
func (c *Contents) Buffers() <-chan *Buffer { return c.full }

// Done returns a buffer to c, to be used again.
func (c *Contents) Done(b *Buffer) {
	if cap(b.Bytes) > keptCopy {
		b.Bytes = nil
	}
	select {
	case c.free <- b:
	default:
	}
}

// Held returns an estimate, from the hits, of the bytes in all buffers that threads have left.
func (c *Contents) Held() float64 { return math.Float64frombits(c.held.Load()) }

// Hold adds to Held. Only one goroutine may call it.
func (c *Contents) Hold(bytes float64) { c.held.Store(math.Float64bits(c.Held() + bytes)) }

// Copied returns how many buffers were copied, and how many bytes.
func (c *Contents) Copied() (buffers, bytes int64) { return c.copied.Load(), c.bytes.Load() }

// Unread returns how many buffers were drawn but not copied, for that reason.
func (c *Contents) Unread(why Unread) int64 { return c.unread[why].Load() }

// Fail counts a buffer whose copy turned out to be useless.
func (c *Contents) Fail() {
	c.copied.Add(-1)
	c.unread[UnreadFailed].Add(1)
}

// contentReader is the part of Contents that belongs to the sampler's OS thread.
type contentReader struct {
	*Contents
	moment  uint64  // the address of the count of collections
	chance  float64 // the probability that a buffer is copied
	offered float64 // bytes of buffers since chance was set
}

type hitLot struct {
	sort         look.HitSort
	weight       float64 // how many hits this one stands for
	begin, whole uint64  // the buffer that the thread has left
	used, moment uint64
}

// lotOf returns what a record contains about buffers.
func (r *eventRun) lotOf(b ring.Bytes, e *ring.Hit, number int) (lot hitLot) {
	event := &r.list[number]
	if event.Retired == nil || len(event.Probes) == 0 {
		return lot
	}
	word := func(at int) uint64 { return b.Word(e.Raw + uint64(dataCopies+event.size()+at)) }
	lot = hitLot{sort: look.HitSort(min(word(lotSort), uint64(look.HitWithoutSample))), weight: 1, begin: word(lotBegin),
		whole: word(lotWhole), used: word(lotUsed), moment: word(lotMoment)}
	if chance, amount := word(lotChance), b.Word(e.Raw+dataAmount); chance > 0 && chance < amount {
		lot.weight = float64(amount) / float64(chance)
	}
	return lot
}

// take copies the buffer that a hit names, with the probability chance.
func (c *contentReader) take(tid int, lot *hitLot) {
	if c.Contents == nil || lot.whole == 0 {
		return
	}
	if lot.used == 0 || lot.used > lot.whole || lot.whole > math.MaxInt64/2 || lot.used%8 != 0 {
		c.unread[UnreadFailed].Add(1)
		return
	}
	c.Hold(lot.weight * float64(lot.used))
	c.offered += float64(lot.used)
	if rand.Float64() >= c.chance {
		return
	}
	if why := c.copy(tid, lot); why < NumUnread {
		c.unread[why].Add(1)
	}
}

// copy copies a buffer. It returns NumUnread if it has handed over the copy.
func (c *contentReader) copy(tid int, lot *hitLot) Unread {
	switch {
	case lot.begin == 0:
		return UnreadCollected
	case lot.used > maxContent:
		return UnreadLarge
	case len(c.full) == cap(c.full):
		return UnreadBusy
	}
	to := c.emptyBuffer()
	if uint64(cap(to.Bytes)) < lot.used {
		to.Bytes = make([]byte, lot.used)
	}
	to.TID, to.Addr, to.Bytes, to.Weight = tid, lot.begin, to.Bytes[:lot.used], lot.weight/c.chance
	if c.memory.Read(lot.begin, to.Bytes) != nil {
		c.Done(to)
		return UnreadFailed
	}
	var now [8]byte
	if c.memory.Read(c.moment, now[:momentSize]) != nil || ring.Bytes(now[:]).Word(0) != lot.moment {
		c.Done(to)
		return UnreadLate
	}
	c.copied.Add(1)
	c.bytes.Add(int64(lot.used))
	c.full <- to
	return NumUnread
}

func (c *contentReader) emptyBuffer() *Buffer {
	select {
	case b := <-c.free:
		return b
	default:
		return new(Buffer)
	}
}

// setChance sets chance so that a window with as many bytes as the last one stays within contentBudget.
func (c *contentReader) setChance(window int64) {
	if c.Contents == nil || c.offered == 0 {
		return
	}
	c.chance = min(1, contentBudget*float64(window)/1e9/c.offered)
	c.offered = 0
}
