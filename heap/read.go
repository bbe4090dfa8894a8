package heap

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"goprof/profile"
	"goprof/vmstructs"
)

type Options struct {
	// Bytes and Time bound a reading. 0 stands for DefaultBytes and DefaultTime. A larger heap is sampled.
	Bytes uint64
	Time  time.Duration
	// All reads the whole heap, however long that takes.
	All bool
	// Life says when the JVM began. Life.Now is the time at which the heap stopped changing; zero stands for a running
	// JVM.
	Life vmstructs.Lifetime
	// Seed is the seed of the random numbers. The same seed draws the same pieces of the same heap.
	Seed uint64
	// Cancel ends the reading early. The result then has the parts that were read before. May be nil.
	Cancel <-chan struct{}
}

// usual fills in the defaults.
func (opt Options) usual() Options {
	opt.Bytes, opt.Time = cmp.Or(opt.Bytes, DefaultBytes), cmp.Or(opt.Time, DefaultTime)
	return opt
}

const (
	DefaultBytes = 200 << 20
	DefaultTime  = time.Second

	// unitSize is the size of the drawn pieces. Smaller pieces give a smaller error for the same number of bytes. But the
	// first object of each piece must be found, which costs time.
	unitSize = 32 << 10
	// maxUnits bounds the pieces of a part. A larger part has larger pieces.
	maxUnits = 1 << 24
	// leastUnits is the number of pieces that are drawn of each part, if it has so many.
	leastUnits = 320
	// leastShare is the share of the time and the bytes for the sample of a small part.
	leastShare = 0.1
	// wholeSize is the size of the pieces when a whole part is read. A collection only spoils the piece that is being
	// read.
	wholeSize = 1 << 20
	// humongousTime is the share of the time for humongous objects if the other objects are sampled.
	humongousTime = 0.3
	// maxKept bounds the objects that are checked again after a part was read.
	maxKept = 1 << 12
	// mostLost is how often a part is copied again because collections change its pieces.
	mostLost = 4
	// exactTime is the share of the time that is spent trying to read a small heap as a whole. The rest is for a sample.
	exactTime = 0.6
	// settleTime is how long goprof waits for the end of a collection.
	settleTime, settleTick = 300 * time.Millisecond, 2 * time.Millisecond
	// tries is how often reading all young objects is tried. Each collection in between moves all of them.
	tries = 3
)

// reading is the state of one reading of the heap.
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
	stuck   bool                   // a collection does not end
	seen    []vmstructs.SeenObject // of the present unit: these show whether the collector has moved what was read
	kept    []vmstructs.SeenObject // one of each unit of the present part
	units   int
	met     func(o *vmstructs.Object, part vmstructs.HeapPart, unit int) // may be nil
}

// Reader reads one JVM's heap, any number of times.
type Reader struct{ heap *vmstructs.Heap }

func NewReader(vm *vmstructs.VM) (*Reader, error) {
	h, err := vm.NewHeap()
	if err != nil {
		return nil, err
	}
	return &Reader{h}, nil
}

// Why explains in words why a heap cannot be read.
func Why(err error) string {
	if errors.Is(err, vmstructs.ErrMissing) {
		return "this JVM, or its collector, does not say where the objects of its heap are"
	}
	return err.Error()
}

// Read counts what fills the heap.
func (r *Reader) Read(opt Options) (*profile.Heap, error) {
	h, err := r.read(opt, nil)
	if err == nil && h.Swept != nil && r.heap.HidesFillers() {
		h.Notes = append(h.Notes, "a collection of this JDK puts int[] and java.lang.Object in the place of dead objects: "+
			"they are counted here, and may be many")
	}
	return h, err
}

// read calls met for each object that it reads, and for some objects twice.
func (r *Reader) read(opt Options, met func(o *vmstructs.Object, part vmstructs.HeapPart, unit int)) (*profile.Heap,
	error) {
	opt = opt.usual()
	r.heap.Forget() // a class may have the address of another that was unloaded
	x := &reading{heap: r.heap, opt: opt, tally: newTally(), rand: rand.New(rand.NewPCG(opt.Seed, 0)),
		began: time.Now(), met: met}
	x.settle()
	if opt.Life.Now.IsZero() {
		opt.Life.Now = x.began
	}
	collections, counted := r.heap.OldCollections(opt.Life)
	areas, err := x.areas()
	if err != nil {
		return nil, err
	}
	if whole := x.opt.All || total(areas) <= opt.Bytes; !whole || !x.readAll(areas) {
		if x.expired = false; whole {
			x.tally = newTally()
			x.heap.Forget() // rows of the previous tally
		}
		if areas, err = x.areas(); err != nil {
			return nil, err
		}
		x.sample(areas)
	}
	h := x.result()
	h.At = opt.Life.Now
	if counted {
		h.OldCollections = &collections.Count
		if ago, known := collections.Swept.Get(); known {
			h.Swept = &ago
		}
	}
	return h, nil
}

func total(areas []*vmstructs.HeapArea) (sum uint64) {
	for i := range areas {
		sum += areas[i].Top - areas[i].Start
	}
	return sum
}

// settle waits, at most settleTime, until no collection stops the program.
func (x *reading) settle() {
	for end := time.Now().Add(settleTime); !x.stuck && x.heap.Epoch().Active; time.Sleep(settleTick) {
		if x.over(x.opt.Time) {
			return
		}
		if time.Now().After(end) {
			x.stuck = true
			x.note("a collection is under way and does not end: objects that it moves are counted not at all, or twice")
		}
	}
}

// note adds a note to the result, unless it is there already.
func (x *reading) note(text string) {
	if !slices.Contains(x.notes, text) {
		x.notes = append(x.notes, text)
	}
}

// areas lists the areas, and adds up the bytes of each part.
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

// over reports whether the reading must end: the time limit has passed, or Cancel is closed.
func (x *reading) over(limit time.Duration) bool {
	select {
	case <-x.opt.Cancel:
		x.expired = true
	default:
		x.expired = x.expired || !x.opt.All && time.Since(x.began) > limit
	}
	return x.expired
}

// readAll reads whole parts. Young objects come first, because they do not last. It returns false if there was no time
// for all parts.
func (x *reading) readAll(areas []*vmstructs.HeapArea) bool {
	limit := time.Duration(float64(x.opt.Time) * exactTime)
	areas, whole := x.readYoung(areas, limit)
	for part, of := range byPart(areas) {
		if whole && len(of) > 0 && vmstructs.HeapPart(part) != vmstructs.YoungPart {
			whole = x.readPart(of, limit)
		}
	}
	return whole || x.opt.All
}

// byPart are the areas of each part.
func byPart(areas []*vmstructs.HeapArea) (of [vmstructs.HeapParts][]*vmstructs.HeapArea) {
	for _, a := range areas {
		of[a.Part] = append(of[a.Part], a)
	}
	return of
}

// readYoung reads all young areas between two collections. If collections are too frequent for that, it reads as many
// random pieces as the young areas have now. last has the most recent list of all areas.
func (x *reading) readYoung(areas []*vmstructs.HeapArea, limit time.Duration) (last []*vmstructs.HeapArea, whole bool) {
	for range tries {
		young := byPart(areas)[vmstructs.YoungPart]
		if len(young) == 0 {
			return areas, true
		}
		if x.readPart(young, limit) && !x.tally.parts[vmstructs.YoungPart].sampled {
			return areas, true
		}
		if x.expired {
			return areas, false
		}
		x.tally.reset(vmstructs.YoungPart)
		x.settle()
		var err error
		if areas, err = x.areas(); err != nil {
			return nil, false
		}
	}
	x.note("young objects were collected faster than goprof could read them: they were sampled")
	if young := byPart(areas)[vmstructs.YoungPart]; len(young) > 0 {
		x.samplePart(young, float64(total(young)), limit)
	}
	return areas, !x.expired
}

// readPart reads all areas of a part, piece by piece. It leaves out pieces that a collection changes during the
// reading. The others are then a sample. It returns false if there was no time for all.
func (x *reading) readPart(areas []*vmstructs.HeapArea, limit time.Duration) bool {
	epoch := x.heap.Epoch()
	x.kept = x.kept[:0]
	defer x.doubt(areas)
	for _, a := range areas {
		for from, to := a.Start, uint64(0); from < a.Top; from = to {
			if to = min(from+wholeSize, a.Top); a.Part == vmstructs.HumongousPart {
				to = a.Top
			}
			whole, valid := x.unit(a, from, to, limit, &epoch)
			switch {
			case !whole:
				return false
			case valid:
				continue
			}
			if x.lose(a); a.Part == vmstructs.YoungPart {
				return true // all young objects have moved
			}
			if a = x.again(a); a == nil {
				break
			}
		}
	}
	return true
}

// lose counts a piece of an area that a collection has changed.
func (x *reading) lose(a *vmstructs.HeapArea) {
	p := &x.tally.parts[a.Part]
	switch p.sampled = true; {
	case a.Part == vmstructs.HumongousPart: // the object is gone
		p.sampled = false
		p.used -= min(p.used, a.Top-a.Start)
	case a.Region() && a.Part != vmstructs.YoungPart:
		p.moved += float64(a.Top - a.Start)
		p.lost++
	default: // objects that were read before may have moved, too
		p.moved = max(p.size, unitSize)
	}
}

// doubt checks objects of all pieces of a part again. If a collection has moved some of them in the meantime, it may
// have moved others, which were then read twice or never. If an object of a space has moved, all objects after it have
// moved, too.
func (x *reading) doubt(areas []*vmstructs.HeapArea) {
	gone := x.heap.Gone(x.kept)
	if gone == 0 || areas[0].Part == vmstructs.HumongousPart {
		return
	}
	p := &x.tally.parts[areas[0].Part]
	if p.sampled = true; areas[0].Region() {
		p.moved = max(p.moved, p.size*float64(gone)/float64(len(x.kept)))
	} else {
		p.moved = p.size
	}
}

// again returns an area as it is after a collection. It returns nil for a region that no longer exists. A space may
// hold less than before.
func (x *reading) again(a *vmstructs.HeapArea) *vmstructs.HeapArea {
	if a.Region() {
		return nil
	}
	if x.settle(); a.InOrder() { // the area is not emptied, and knows where the walk continues
		return a
	}
	areas, err := x.areas()
	if err != nil {
		return nil
	}
	for _, now := range areas {
		if now.Start == a.Start && now.Part == a.Part {
			return now
		}
	}
	return nil
}

// unit counts the objects that begin in a piece of an area. valid reports whether the piece certainly did not change
// during the reading. A young piece is not valid if a collection has begun or ended since epoch; unit updates epoch.
// whole is false if the time is up.
func (x *reading) unit(a *vmstructs.HeapArea, from, to uint64, limit time.Duration, epoch *vmstructs.HeapEpoch) (whole,
	valid bool) {
	if epoch.Active {
		x.settle()
		*epoch = x.heap.Epoch()
	}
	t := x.tally
	t.part = a.Part
	x.units++
	x.seen = x.seen[:0]
	n := 0
	var last vmstructs.SeenObject
	read, unread, whole := x.heap.Walk(a, from, to, func() bool { return x.over(limit) }, func(o *vmstructs.Object) {
		t.add(o)
		if x.met != nil {
			x.met(o, a.Part, x.units)
		}
		last = vmstructs.SeenObject{Addr: o.Addr, Class: o.Class}
		if n++; n&(n-1) == 0 { // the first, second, fourth, eighth ...
			x.seen = append(x.seen, last)
		}
	})
	x.copied += read
	if !whole {
		t.forget()
		return false, false
	}
	if n > 0 {
		x.seen = append(x.seen, last)
	}
	now := x.heap.Epoch()
	x.stuck = x.stuck && now.Active
	unsettled := now != *epoch || now.Active && !x.stuck
	*epoch = now
	if unsettled && (a.Part == vmstructs.YoungPart || unread.Moving > 0) || !x.heap.Same(a) || x.heap.Gone(x.seen) > 0 {
		t.forget()
		return true, false
	}
	if n > 0 && len(x.kept) < maxKept {
		x.kept = append(x.kept, last)
	}
	t.commit(to-from, unread)
	return true, true
}

// sample reads random pieces of each part. It reads the headers of all humongous objects, because headers
// are small.
func (x *reading) sample(areas []*vmstructs.HeapArea) {
	of := byPart(areas)
	bytes := float64(total(areas) - total(of[vmstructs.HumongousPart]))
	spent, left := time.Since(x.began), float64(x.opt.Bytes)
	rest := x.opt.Time - spent
	share := 0.0
	for _, part := range []vmstructs.HeapPart{vmstructs.YoungPart, vmstructs.HumongousPart, vmstructs.OldPart,
		vmstructs.WholeHeap} {
		if len(of[part]) == 0 {
			continue
		}
		x.expired = false
		if part == vmstructs.HumongousPart {
			x.rand.Shuffle(len(of[part]), func(i, k int) { of[part][i], of[part][k] = of[part][k], of[part][i] })
			x.tally.parts[part].sampled = !x.readPart(of[part], time.Since(x.began)+scaled(rest, humongousTime))
			continue
		}
		own := leastShare + (1-2*leastShare)*float64(total(of[part]))/bytes
		share += own
		x.samplePart(of[part], own*left, spent+scaled(rest, share))
	}
}

func scaled(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * min(share, 1))
}

// samplePart draws pieces of one part until it has read enough. If a collection has moved all of them, it draws pieces
// of the new areas. A collector empties regions with much garbage, so the remaining regions have more live objects than
// the average. A sample ends, or begins again, before this bias is larger than the random error.
func (x *reading) samplePart(areas []*vmstructs.HeapArea, budget float64, limit time.Duration) {
	part := areas[0].Part
	p := &x.tally.parts[part]
	p.sampled = true
	epoch := x.heap.Epoch()
	draw := drawPieces(x.rand, areas)
	again := tries
	for before := x.copied; ; {
		a, from, to, ok := draw()
		copied := float64(x.copied - before)
		if !ok || copied >= budget && p.units >= leastUnits || copied >= mostLost*(budget+unitSize*leastUnits) {
			return
		}
		whole, valid := x.unit(a, from, to, limit, &epoch)
		if !whole {
			return
		}
		if valid {
			continue
		}
		x.lose(a)
		if a.Region() && part != vmstructs.YoungPart { // other regions have not changed
			if p.lost*p.lost <= p.units {
				continue
			} else if p.units >= leastUnits {
				return
			} else if again == 0 {
				continue
			}
			again--
			used, free := p.used, p.free // if the areas cannot be listed, these bytes are reported as not read
			x.tally.reset(part)
			p.sampled, p.used, p.free = true, used, free
		}
		x.settle()
		all, err := x.areas()
		if areas = byPart(all)[part]; err != nil || len(areas) == 0 {
			return
		}
		epoch = x.heap.Epoch()
		draw = drawPieces(x.rand, areas)
	}
}

// drawPieces returns a function that returns the pieces of areas in random order, each once. It leaves out areas whose
// objects can only be found one after the other, from the beginning (vmstructs.HeapArea.InOrder).
func drawPieces(rand *rand.Rand, areas []*vmstructs.HeapArea) func() (a *vmstructs.HeapArea, from, to uint64, ok bool) {
	size := uint64(unitSize)
	for total(areas)/size+uint64(len(areas)) > maxUnits && size < 1<<40 {
		size *= 2
	}
	areas = slices.DeleteFunc(slices.Clone(areas), (*vmstructs.HeapArea).InOrder)
	first := make([]int, len(areas)+1) // the number of each area's first piece
	for i := range areas {
		first[i+1] = first[i] + int((areas[i].Top-areas[i].Start+size-1)/size)
	}
	order := spread(rand, first[len(areas)])
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

// spread takes one of each stratum neighbours in each round.
const stratum = 16

// spread returns the numbers below n in random order. Any first part of that order is spread over all numbers, because
// objects of one class often lie side by side. The choice among neighbours is random, because a fixed step may coincide
// with the layout that a program or a collector has made.
func spread(rand *rand.Rand, n int) (order []int) {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	groups := slices.Collect(slices.Chunk(all, stratum))
	for _, g := range groups {
		rand.Shuffle(len(g), func(i, j int) { g[i], g[j] = g[j], g[i] })
	}
	for turn := range stratum {
		for _, i := range rand.Perm(len(groups)) {
			if g := groups[i]; turn < len(g) {
				order = append(order, g[turn])
			}
		}
	}
	return order
}
