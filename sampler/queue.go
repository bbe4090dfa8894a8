package sampler

import (
	"math"
	"sync/atomic"
	"time"

	"goprof/sampler/look"
)

// Queue hands snapshots from the sampler to a walker. There is a fixed number of snapshots, which are used again and
// again. Each is made when it is first needed: an agent has hundreds of queues, and few samples in each. An engine that
// stops threads has all of them made before (MakeAll), a member of its group takes new ones from a Stock. When the
// walker holds all of them, the sampler finds none free. It then counts a lost sample and does not wait, because a
// snapshot that is walked late points at memory that has changed.
//
// Stacks may be deep, so waiting snapshots are bounded in bytes, too. The snapshot that was given back last is the
// first to be filled again. So only the few snapshots that are in use at the same time grow to the size of the deepest
// stacks.
//
// Consumers receive from Looks until it is closed, and give each snapshot back with Done. There may be several
// consumers.
type Queue struct {
	full  chan *look.Look
	slots []slot
	stock *Stock // new snapshots come from it; nil: they are made
	// top is the free slot to be taken next, as its number + 1 (0: none). The bits above it count all changes: without
	// the count, a slot that was taken and given back meanwhile would look as if nothing had happened.
	top    atomic.Uint64
	queued atomic.Int64 // bytes of stacks that the consumer has
	free   atomic.Int64 // bytes of buffers that free snapshots have
	kept   []*look.Look // the sampler's: to be handed over together
	waits  int64        // how long a look may wait in kept at most
	began  int64        // when the run did
	hurry  atomic.Int64 // until then looks wait for KeptInHurry
	most   int          // how many looks may wait in kept
	behind atomic.Int64 // looks that came to the consumer very late, since TakeBehind
	paced  atomic.Int64 // Paced's moment
}

type slot struct {
	snap   *look.Look    // nil: it was never needed
	next   atomic.Uint32 // free slot below this one, as its number + 1
	queued int64         // bytes, while the consumer has it
}

const (
	// mostBytes of stacks may wait for their walk: then the next sample is lost as if no snapshot were free.
	mostBytes = 32 << 20
	// keptStack is how large a buffer a free snapshot keeps. keptBytes bounds the buffers of all free snapshots: after
	// a time in which many looks waited, they would leave Go's garbage collector no room (session.MemoryGoal).
	keptStack = 1 << 20
	keptBytes = 8 << 20
	// KeptFor returns how long a look may wait for others before it is handed over. Waiting looks are lost when the
	// process ends, and a program may end soon. So looks wait at most a fraction of the run so far: 1/keptOfRun. Looks
	// of Lean runs wait longer, because their processes seldom end.
	KeptFor     = int64(250 * time.Millisecond)
	KeptForLean = int64(time.Second)
	keptOfRun   = 20
	// KeptInHurry is how long a look may wait for hurryFor after the consumer came too late for one.
	KeptInHurry = int64(10 * time.Millisecond)
	hurryFor    = int64(2 * time.Second)
	// keptPart: one in so many of all snapshots may wait so, and one in so many of mostBytes. Lean runs have few
	// snapshots, and all samples are taken together.
	keptPart, keptPartLean = 8, 2
)

// NewQueue makes a queue of n snapshots.
func NewQueue(n int) *Queue {
	q := &Queue{waits: KeptFor, most: n / keptPart, full: make(chan *look.Look, n), slots: make([]slot, n)}
	for i := range q.slots {
		q.release(uint32(i))
	}
	return q
}

// Size is how many snapshots there are.
func (q *Queue) Size() int { return len(q.slots) }

// Looks delivers the looks that were taken; it is closed when sampling ends.
func (q *Queue) Looks() <-chan *look.Look { return q.full }

// Done gives a snapshot back to be filled again.
func (q *Queue) Done(s *look.Look) {
	if int(s.Slot) >= len(q.slots) || q.slots[s.Slot].snap != s {
		return // not a snapshot of this queue
	}
	slot := &q.slots[s.Slot]
	q.queued.Add(-slot.queued)
	slot.queued = 0
	if cap(s.Stack) > keptStack {
		s.Stack = nil
	}
	if cap(s.Under) > keptStack {
		s.Under = nil
	}
	if bytes := buffersOf(s); q.free.Add(bytes) > keptBytes {
		q.free.Add(-bytes)
		s.Stack, s.Under = nil, nil
	}
	q.release(s.Slot)
}

func buffersOf(s *look.Look) int64 { return int64(cap(s.Stack) + cap(s.Under)) }

func (q *Queue) release(i uint32) {
	for {
		top := q.top.Load()
		q.slots[i].next.Store(uint32(top))
		if q.top.CompareAndSwap(top, (top>>32+1)<<32|uint64(i+1)) {
			return
		}
	}
}

// Take returns a snapshot to fill, nil if there is none.
func (q *Queue) Take() *look.Look {
	for q.queued.Load() < mostBytes {
		top := q.top.Load()
		if uint32(top) == 0 {
			break
		}
		slot := &q.slots[uint32(top)-1]
		if q.top.CompareAndSwap(top, (top>>32+1)<<32|uint64(slot.next.Load())) {
			if !q.make(uint32(top) - 1) {
				q.release(uint32(top) - 1)
				return nil
			}
			q.free.Add(-buffersOf(slot.snap))
			slot.snap.Reset()
			return slot.snap
		}
	}
	return nil
}

// MakeAll makes all snapshots now, before the run's first stop. A stop may come at any moment later (ptrace.Pending),
// and nothing is allocated while a thread stands still.
func (q *Queue) MakeAll() {
	for i := range q.slots {
		q.make(uint32(i))
	}
}

// TakeFrom makes the queue take its new snapshots from a Stock.
func (q *Queue) TakeFrom(s *Stock) { q.stock = s }

// make returns false if the stock is empty.
func (q *Queue) make(i uint32) bool {
	s := &q.slots[i]
	if s.snap == nil {
		if s.snap = q.stock.take(); s.snap == nil {
			return false
		}
		s.snap.Slot = i
	}
	return true
}

// Stock holds new snapshots for the queues of a group that stops threads. Only the group's sampling thread takes from
// them and fills the Stock, while no thread stands still.
type Stock struct{ looks []*look.Look }

// stocked is how many snapshots a full Stock has. A queue keeps what it has taken, so few are needed at a time.
const stocked = 64

// Low reports whether so few snapshots are left that samples may soon be lost.
func (s *Stock) Low() bool { return len(s.looks) < stocked/4 }

// Fill makes the missing snapshots.
func (s *Stock) Fill() {
	for len(s.looks) < stocked {
		s.looks = append(s.looks, new(look.Look))
	}
}

// take returns nil if there is none. Without a Stock it makes one.
func (s *Stock) take() *look.Look {
	if s == nil {
		return new(look.Look)
	}
	n := len(s.looks)
	if n == 0 {
		return nil
	}
	snap := s.looks[n-1]
	s.looks = s.looks[:n-1]
	return snap
}

// Put never blocks: there are no more snapshots than places.
func (q *Queue) Put(s *look.Look) {
	q.count(s)
	q.full <- s
}

// count counts the bytes of a look that is under way.
func (q *Queue) count(s *look.Look) {
	slot := &q.slots[s.Slot]
	slot.queued = buffersOf(s)
	q.queued.Add(slot.queued)
}

// Begin begins a run: how long looks wait grows from now on.
func (q *Queue) Begin(now int64) { q.began = now }

// beLean sets how long looks wait, and how many, in a Lean run.
func (q *Queue) beLean() { q.waits, q.most = KeptForLean, len(q.slots)/keptPartLean }

// Hurry is called by the consumer if a look came too late for its walk: code comes and goes. Lean runs do not hurry,
// for many of them share a process.
func (q *Queue) Hurry(now int64) { q.hurry.Store(now + hurryFor) }

// Behind is called by the consumer for a look that it got so late that soon it will lose some. The sampler takes fewer
// then. Looks that were taken before it did so do not count.
func (q *Queue) Behind(when int64) {
	if when >= q.paced.Load() {
		q.behind.Add(1)
	}
}

// Paced notes that from now on looks come more slowly. Those before say nothing of that rate.
func (q *Queue) Paced(now int64) { q.paced.Store(now) }

// TakeBehind returns for how many looks Behind was called since the last time.
func (q *Queue) TakeBehind() int64 {
	if q.behind.Load() == 0 {
		return 0
	}
	return q.behind.Swap(0)
}

// Wait is how long a look may wait now.
func (q *Queue) Wait(now int64) int64 {
	if q.waits == KeptFor && now < q.hurry.Load() {
		return KeptInHurry
	}
	return q.patience(now)
}

// patience is how long a look may wait where code does not change.
func (q *Queue) patience(now int64) int64 {
	if q.waits != KeptFor {
		return q.waits
	}
	return min(max((now-q.began)/keptOfRun, KeptInHurry), KeptFor)
}

// IsBehind reports whether one in so many of all snapshots waits for its walk, or of all bytes that may wait.
func (q *Queue) IsBehind(part int) bool {
	return len(q.full) > cap(q.full)/part || q.queued.Load() > mostBytes/int64(part)
}

// Keep is Put for a look that may wait for others. To wake the walker up takes more CPU time than most walks: Go has to
// find an OS thread for the walker and to wake it up, and that OS thread looks for other work before it sleeps again.
func (q *Queue) Keep(s *look.Look) {
	q.count(s)
	q.kept = append(q.kept, s)
	if len(q.kept) >= q.most || q.queued.Load() > mostBytes/keptPart {
		q.HandOver()
	}
}

// HandOverBefore hands over what has waited long enough by then.
func (q *Queue) HandOverBefore(moment int64) {
	if moment >= q.HandOverAt() {
		q.HandOver()
	}
}

// HandOverAt is the moment at which the look that has waited longest should be handed over. Others are handed over at
// the same moment (pulse.go).
func (q *Queue) HandOverAt() int64 {
	if len(q.kept) == 0 {
		return math.MaxInt64
	}
	return PulseAfter(q.kept[0].When, q.Wait(q.kept[0].When))
}

// HandOver hands over all that was kept.
func (q *Queue) HandOver() {
	for _, s := range q.kept {
		q.full <- s
	}
	q.kept = q.kept[:0]
}
