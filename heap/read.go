package heap

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"goprof/profile"
	"goprof/vmstructs"
)

// Options say how much is read.
type Options struct {
	// Bytes and Time bound a reading: DefaultBytes and DefaultTime where they are 0. A heap that has more is sampled.
	Bytes uint64
	Time  time.Duration
	// All reads the whole heap, however long that takes.
	All bool
	// Seed makes the lots. The same seed draws the same pieces of the same heap.
	Seed uint64
	// Cancel ends the reading early. What was read until then is told. May be nil.
	Cancel <-chan struct{}
}

const (
	DefaultBytes = 200 << 20
	DefaultTime  = time.Second

	// unitSize is how large the pieces are that are drawn. Smaller ones say more for the same bytes, up to where
	// finding the first object of each costs more than it.
	unitSize = 256 << 10
	// maxUnits bounds the pieces of a part. A heap with more has larger pieces.
	maxUnits = 1 << 20
	// leastUnits is how many pieces are drawn of each part, if it has as many.
	leastUnits = 40
	// leastShare is the part of the time, and of the bytes, that a sample of a small part gets.
	leastShare = 0.1
	// exactTime is the part of the time in which a small heap must have been read as a whole. The rest is for a sample.
	exactTime = 0.6
	// settleTime is how long goprof waits for the end of a collection.
	settleTime, settleTick = 300 * time.Millisecond, 2 * time.Millisecond
	// tries bounds how often young objects are read as a whole: each collection moves all of them.
	tries = 3
)

// reading is a look at the heap.
type reading struct {
	heap    *vmstructs.Heap
	opt     Options
	tally   *tally
	rand    *rand.Rand
	began   time.Time
	copied  uint64
	unknown string
	notes   []string
	expired bool
	seen    []seen // objects of the unit under way
}

// seen is an object that shows whether the collector has moved what was read.
type seen struct {
	addr  uint64
	class *vmstructs.ObjectClass
}

// Reader reads one JVM's heap, again and again.
type Reader struct{ heap *vmstructs.Heap }

// NewReader makes a reader of a JVM's heap.
func NewReader(vm *vmstructs.VM) (*Reader, error) {
	h, err := vm.NewHeap()
	if err != nil {
		return nil, err
	}
	return &Reader{h}, nil
}

// Read counts what fills the heap.
func (r *Reader) Read(opt Options) (*profile.Heap, error) {
	opt.Bytes, opt.Time = cmp.Or(opt.Bytes, DefaultBytes), cmp.Or(opt.Time, DefaultTime)
	r.heap.Forget() // another class may have come to the address of one that was unloaded
	x := &reading{heap: r.heap, opt: opt, tally: newTally(), rand: rand.New(rand.NewPCG(opt.Seed, 0)),
		began: time.Now()}
	x.settle()
	areas, err := x.areas()
	if err != nil {
		return nil, err
	}
	if whole := x.opt.All || total(areas) <= opt.Bytes; !whole || !x.readAll(areas) {
		if x.expired = false; whole {
			x.tally = newTally()
			x.heap.Forget() // rows of the tally before
		}
		if areas, err = x.areas(); err != nil {
			return nil, err
		}
		x.sample(areas)
	}
	return x.result(), nil
}

func total(areas []*vmstructs.HeapArea) (sum uint64) {
	for i := range areas {
		sum += areas[i].Top - areas[i].Start
	}
	return sum
}

// settle waits until no collection stops the program. A process that is stopped in the middle of one is read as it is.
func (x *reading) settle() {
	for end := time.Now().Add(settleTime); x.heap.Epoch().Active; time.Sleep(settleTick) {
		if time.Now().After(end) {
			x.notes = append(x.notes, "a collection is under way and does not end: objects that it moves are not counted")
			return
		}
	}
}

// areas lists the areas, and notes how much each part has.
func (x *reading) areas() (areas []*vmstructs.HeapArea, err error) {
	if areas, x.unknown, err = x.heap.Areas(); err != nil {
		return nil, err
	}
	for part := range x.tally.parts {
		x.tally.parts[part].used, x.tally.parts[part].free = 0, 0
	}
	for _, a := range areas {
		p := &x.tally.parts[a.Part]
		p.used, p.free = p.used+a.Top-a.Start, p.free+a.Free()
	}
	return areas, nil
}

// over reports whether the reading must end.
func (x *reading) over(limit time.Duration) bool {
	select {
	case <-x.opt.Cancel:
		x.expired = true
	default:
		x.expired = x.expired || !x.opt.All && time.Since(x.began) > limit
	}
	return x.expired
}

// readAll reads whole areas. Young ones come first: they do not last. It returns false if there was no time for all.
func (x *reading) readAll(areas []*vmstructs.HeapArea) bool {
	limit := time.Duration(float64(x.opt.Time) * exactTime)
	for try := 1; ; try++ {
		if x.readYoung(areas, limit) {
			break
		}
		if x.expired {
			return x.opt.All
		}
		if try == tries {
			x.notes = append(x.notes, "young objects were collected faster than goprof could read them")
			break
		}
		x.tally.reset(vmstructs.YoungPart)
		x.settle()
		var err error
		if areas, err = x.areas(); err != nil {
			return false
		}
	}
	epoch := x.heap.Epoch()
	for i := range areas {
		if areas[i].Part == vmstructs.YoungPart {
			continue
		}
		if !x.unit(areas[i], areas[i].Start, areas[i].Top, limit, &epoch) {
			return x.opt.All
		}
	}
	return true
}

// readYoung reads all young areas. It returns false if a collection has moved their objects meanwhile.
func (x *reading) readYoung(areas []*vmstructs.HeapArea, limit time.Duration) bool {
	epoch := x.heap.Epoch()
	for i := range areas {
		if a := areas[i]; a.Part == vmstructs.YoungPart {
			before := epoch
			if !x.unit(a, a.Start, a.Top, limit, &epoch) || epoch != before {
				return false
			}
		}
	}
	return true
}

// unit counts the objects that begin in a piece of an area. If a collection has begun or ended since epoch, which is
// brought up to date, the piece counts only if it can be shown to be as it was. unit returns false if the time is up.
func (x *reading) unit(a *vmstructs.HeapArea, from, to uint64, limit time.Duration, epoch *vmstructs.HeapEpoch) bool {
	t := x.tally
	t.part = a.Part
	x.seen = x.seen[:0]
	n := 0
	read, unread, whole := x.heap.Walk(a, from, to, func() bool { return x.over(limit) }, func(o *vmstructs.Object) {
		t.add(o)
		if n++; n&(n-1) == 0 { // the first, the second, the fourth ...
			x.seen = append(x.seen, seen{o.Addr, o.Class})
		}
	})
	x.copied += read
	if !whole {
		t.forget()
		return false
	}
	if now := x.heap.Epoch(); now != *epoch || now.Active {
		*epoch = now
		if a.Part == vmstructs.YoungPart || !x.heap.Same(a) || !x.still() {
			if t.parts[a.Part].sampled { // it says nothing about the others
				t.forget()
			} else {
				t.void(to - from)
			}
			return true
		}
	}
	t.commit(to-from, unread)
	return true
}

// still reports whether objects of a unit are where they were.
func (x *reading) still() bool {
	for _, s := range x.seen {
		if !x.heap.Still(s.addr, s.class) {
			return false
		}
	}
	return true
}

// sample reads pieces of each part that are drawn by lot. Humongous objects are all read: their headers are little.
func (x *reading) sample(areas []*vmstructs.HeapArea) {
	byPart := [vmstructs.HeapParts][]*vmstructs.HeapArea{}
	for _, a := range areas {
		byPart[a.Part] = append(byPart[a.Part], a)
	}
	bytes := float64(total(areas) - total(byPart[vmstructs.HumongousPart]))
	spent, left := time.Since(x.began), float64(x.opt.Bytes)
	time := x.opt.Time - spent
	share := 0.0
	for _, part := range []vmstructs.HeapPart{vmstructs.YoungPart, vmstructs.HumongousPart, vmstructs.OldPart,
		vmstructs.WholeHeap} {
		if len(byPart[part]) == 0 {
			continue
		}
		x.expired = false
		if part == vmstructs.HumongousPart {
			epoch := x.heap.Epoch()
			x.tally.parts[part].sampled = !x.eachOf(byPart[part], x.opt.Time, &epoch)
			continue
		}
		own := leastShare + (1-2*leastShare)*float64(total(byPart[part]))/bytes
		share += own
		x.samplePart(byPart[part], own*left, spent+scaled(time, share))
	}
}

func scaled(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * min(share, 1))
}

// eachOf reads areas in any order. It returns false if there was no time for all.
func (x *reading) eachOf(areas []*vmstructs.HeapArea, limit time.Duration, epoch *vmstructs.HeapEpoch) bool {
	x.rand.Shuffle(len(areas), func(i, k int) { areas[i], areas[k] = areas[k], areas[i] })
	for i := range areas {
		if !x.unit(areas[i], areas[i].Start, areas[i].Top, limit, epoch) {
			return false
		}
	}
	return true
}

// samplePart draws pieces of one part until it has read enough.
func (x *reading) samplePart(areas []*vmstructs.HeapArea, budget float64, limit time.Duration) {
	part := areas[0].Part
	t := x.tally
	t.parts[part].sampled = true
	epoch := x.heap.Epoch()
	draw := x.lots(areas)
	copied := x.copied
	for {
		a, from, to, ok := draw()
		if !ok {
			return
		}
		if p := &t.parts[part]; float64(x.copied-copied) >= budget && p.units >= leastUnits {
			return
		}
		before := epoch
		if !x.unit(a, from, to, limit, &epoch) {
			return
		}
		if part == vmstructs.YoungPart && epoch != before { // all young areas are other ones now
			x.settle()
			all, err := x.areas()
			if err != nil {
				return
			}
			areas = slices.DeleteFunc(all, func(a *vmstructs.HeapArea) bool { return a.Part != part })
			if len(areas) == 0 {
				return
			}
			t.parts[part].moved = true
			epoch = x.heap.Epoch()
			draw = x.lots(areas)
		}
	}
}

// lots draws the pieces of areas in any order, each once.
func (x *reading) lots(areas []*vmstructs.HeapArea) func() (a *vmstructs.HeapArea, from, to uint64, ok bool) {
	size := uint64(unitSize)
	for total(areas)/size+uint64(len(areas)) > maxUnits && size < 1<<40 {
		size *= 2
	}
	first := make([]int, len(areas)+1) // the number of each area's first piece
	for i := range areas {
		first[i+1] = first[i] + int((areas[i].Top-areas[i].Start+size-1)/size)
	}
	order := x.rand.Perm(first[len(areas)])
	return func() (*vmstructs.HeapArea, uint64, uint64, bool) {
		if len(order) == 0 {
			return nil, 0, 0, false
		}
		n := order[0]
		order = order[1:]
		i, _ := slices.BinarySearch(first, n+1)
		a := areas[i-1]
		from := a.Start + uint64(n-first[i-1])*size
		return a, from, min(from+size, a.Top), true
	}
}
