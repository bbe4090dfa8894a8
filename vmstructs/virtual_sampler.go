package vmstructs

import (
	"fmt"
	"math/rand/v2"

	"goprof/process"
)

// VirtualSampler draws random samples of the virtual threads without a carrier. There may be a million of them, so a
// draw reads a bounded number. The JDK keeps virtual threads in concurrent hash sets (containers.go), which count their
// elements (ConcurrentHashMap.baseCount and counterCells). A draw reads some random bins of each set. The bin of a
// thread depends on its number, so threads of one bin may be alike, for example if every fourth thread has the same
// work. So a draw visits one thread of each bin, which stands for the whole bin. On average each thread has the same
// weight, and the visited threads together stand for all threads of the sets.
//
// If a virtual thread owns a StructuredTaskScope, the scope's threads can only be found through that owner. A draw
// reads some of them. Together they stand for all threads of the scope, times the number of threads that the owner
// stands for.
//
// A VirtualSampler uses a Continuations. Both belong to one goroutine.
type VirtualSampler struct {
	Blockers, Names bool // whether to read VirtualThread.For and VirtualThread.Name

	s       *search
	looked  int // how often classes were searched
	visit   func(v *VirtualThread, stands float64)
	visited int
	most    int // visits of one draw
	moment  heapMoment
}

// VirtualSample is the result of a draw, in addition to the visited threads.
type VirtualSample struct {
	Threads   float64 // the number of threads in the sets, including those with a carrier
	Left      float64 // the share of them that no thread stands for, because a collection began
	Untracked int64   // by a counter of the JDK: threads in no set, which cannot be drawn
	Census
}

// errMany: a draw has not visited all chosen threads.
var errMany = fmt.Errorf("%w: too many in scopes within scopes", ErrBadThread)

type threadSet struct {
	table uint64
	n     int64
}

const (
	drawTries    = 4       // attempts of a draw, if a collection has moved the threads
	drawnOfScope = 16      // threads of one scope
	maxGrown     = 8       // tables that a growing table leads to
	mostThreads  = 1 << 31 // in the sets: their counters may have any value
	mostSearches = 20      // searches for classes that were not loaded before
	// Bounds of the nodes, slots and containers that a draw reads.
	drawNodes, drawSlots, drawContainers = 1 << 16, 1 << 22, 1 << 14
)

const classCounting = "jdk/internal/vm/ThreadContainers$RootContainer$CountingRootContainer"

// NewVirtualSampler returns a VirtualSampler that reads through c, nil if c is nil. With ZGC it draws only while the
// collector is idle (Continuations.CollectorRests).
func NewVirtualSampler(c *Continuations) *VirtualSampler {
	if c == nil {
		return nil
	}
	return &VirtualSampler{s: &search{c: c}}
}

// Draw visits about most virtual threads without a carrier, each with the number of threads for which it stands. visit
// also gets threads that could not be read, with the error, and threads with a carrier, marked as Mounted. No thread is
// stopped, so each is shown in its state at a different moment. platform are the threads that may own a
// StructuredTaskScope. If Draw returns an error, it has visited no thread.
func (l *VirtualSampler) Draw(platform []Thread, most int, visit func(v *VirtualThread, stands float64)) (
	VirtualSample, error) {

	s := l.s
	*s = search{c: s.c, klasses: s.klasses, states: s.states, suspended: s.suspended,
		nodes: maxSetNodes - drawNodes, slots: maxSlots - drawSlots, containers: maxContainers - drawContainers,
		seen: map[uint64]bool{}, shown: map[uint64]bool{}, nameless: !l.Names}
	l.visit, l.visited, l.most = visit, 0, 2*most
	if err := l.Prepare(); err != nil {
		return VirtualSample{}, err
	}
	defer s.c.vm.letGoColours()
	if !l.begin() {
		return VirtualSample{}, ErrMoved
	}
	if started, err := l.started(); err != nil || !started {
		return VirtualSample{}, err
	}
	var lot VirtualSample
	part := 1.0 // the share of all threads for which no visited thread stands yet
	for tries := 0; part > 0; tries++ {
		if tries == drawTries || !l.begin() {
			if part == 1 {
				return VirtualSample{}, ErrMoved
			}
			lot.Left = part
			break
		}
		clear(s.seen)
		s.census = Census{}
		chosen, all := l.choose(func() { s.lists(platform) }, max(1, most-l.visited), part)
		if len(s.census.Failed) > 0 && (tries < drawTries-1 || len(chosen) == 0) ||
			len(chosen) == 0 && (all > 0 || !l.still()) {
			continue // a collector was at work, or, if there are few threads, all drawn bins were empty
		}
		lot.Threads = float64(all)
		part = 0
		for i, d := range chosen {
			if !l.lookAt(d.obj, d.stands) {
				part = standFor(chosen[i:]) / lot.Threads
				break
			}
		}
	}
	if s.census.Untracked && s.klasses[classCounting] != 0 {
		if counter, err := s.static(classCounting, "VTHREAD_COUNT"); err == nil {
			lot.Untracked, _ = s.sum(counter, "base", "cells")
		}
	}
	lot.Census = s.census
	return lot, nil
}

// begin begins a reading. It returns false if a collector is at work.
func (l *VirtualSampler) begin() bool {
	vm := l.s.c.vm
	vm.letGoColours()
	l.moment = vm.heapMoment()
	return l.moment.quiet && (!l.s.c.IsZGC() || l.s.c.locks.rests) && vm.holdColours(&l.s.c.colours) == nil
}

// still reports whether no collection has begun since begin.
func (l *VirtualSampler) still() bool {
	vm := l.s.c.vm
	same := vm.letGoColours()
	return vm.holdColours(&l.s.c.colours) == nil && same && vm.nothingMoved(l.moment)
}

// Prepare finds the classes that a draw needs among all loaded classes. That may take longer than a draw.
func (l *VirtualSampler) Prepare() error {
	c := l.s.c
	if err := c.prepare(); err != nil || l.s.klasses != nil {
		return err
	}
	return l.findClasses()
}

func (l *VirtualSampler) findClasses() error {
	l.s.listed = 0
	found, err := l.s.findKlasses(classContainers, classTrackingRoot, classCounting, classVirtual)
	if err == nil {
		l.s.klasses = found
	}
	return err
}

// started reports whether there have been any virtual threads. The first one makes VirtualThread's scheduler. By then
// the classes of the containers are also loaded.
func (l *VirtualSampler) started() (bool, error) {
	s := l.s
	has := func(class string) bool { return s.klasses[class] != 0 }
	if has(classContainers) && (has(classTrackingRoot) || has(classCounting)) {
		return true, nil
	}
	scheduler, err := s.static(classVirtual, "DEFAULT_SCHEDULER", "BUILTIN_SCHEDULER")
	if err != nil || scheduler == 0 || l.looked >= mostSearches {
		return false, err
	}
	l.looked++
	return true, l.findClasses()
}

// drawn is a thread to visit, and the number of threads for which it stands.
type drawn struct {
	obj    uint64
	stands float64
}

// standFor returns the number of threads for which all chosen threads together stand.
func standFor(chosen []drawn) (sum float64) {
	for _, d := range chosen {
		sum += d.stands
	}
	return min(sum, mostThreads)
}

// choose draws threads of the sets that lists finds. all is the number of threads in the sets. Together the chosen
// threads stand for all times part.
func (l *VirtualSampler) choose(lists func(), most int, part float64) (chosen []drawn, all int64) {
	s := l.s
	var sets []threadSet
	s.sets = func(set uint64) {
		if t, err := s.counted(set); err != nil {
			s.census.fail(err)
		} else if t.n = min(t.n, mostThreads-all); t.n > 0 && t.table != 0 {
			sets = append(sets, t)
			all += t.n
		}
	}
	lists()
	s.sets = nil
	share := float64(max(most, 1)) / float64(max(all, 1))
	for _, t := range sets {
		if err := l.some(t.table, share, func(d drawn) { chosen = append(chosen, d) }); err != nil {
			s.census.fail(err)
		}
	}
	rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] }) // some may not be visited
	each := part * float64(all) / max(standFor(chosen), 1)
	for i := range chosen {
		chosen[i].stands = min(chosen[i].stands*each, mostThreads)
	}
	return chosen, all
}

// counted reads the table of a set, and its number of elements.
func (s *search) counted(set uint64) (t threadSet, err error) {
	m, err := s.field(set, "map")
	if err != nil || m == 0 {
		return t, err
	}
	o, err := s.read(m)
	if err != nil {
		return t, err
	}
	if t.table, _, err = o.ref("table"); err != nil {
		return t, err
	}
	t.n, err = s.sum(m, "baseCount", "counterCells")
	return t, err
}

// maxCells bounds the cells of a counter. There are as many as CPUs, or twice as many.
const maxCells = 1 << 12

// sum returns the value of a counter with a base and cells (java.util.concurrent.atomic.Striped64, and the same in
// ConcurrentHashMap).
func (s *search) sum(obj uint64, base, cells string) (int64, error) {
	o, err := s.read(obj)
	if err != nil {
		return 0, err
	}
	n, ok := o.long(base)
	list, _, err := o.ref(cells)
	if !ok || err != nil || list == 0 {
		return n, err
	}
	head, at, size, err := s.slotsOf(list)
	if err != nil {
		return 0, err
	}
	if head.n > maxCells {
		return 0, fmt.Errorf("%w: a counter of %d cells", ErrBadThread, head.n)
	}
	b := make([]byte, uint64(head.n)*size)
	if err := s.c.vm.mem.Bytes(at, b); err != nil {
		return 0, s.c.vm.moved(err)
	}
	for i := uint64(0); i < uint64(len(b)); i += size {
		cell, err := s.c.vm.oopIn(b, i)
		if err != nil {
			return 0, err
		}
		if cell == 0 {
			continue
		}
		if o, err = s.read(cell); err != nil {
			return 0, err
		}
		value, _ := o.long("value")
		n += value
	}
	return n, nil
}

const (
	moreBins = 1.4 // bins that are read for each wanted thread, because many bins are empty
	// maxPieces bounds the pieces of a table that are read. maxBins bounds the bins in all of them.
	maxPieces, maxBins = 512, 1 << 18
)

// some calls each for one element of each bin that it reads. If share is 1 or more, it calls each for all elements.
func (l *VirtualSampler) some(table uint64, share float64, each func(drawn)) error {
	s := l.s
	if share >= 1 {
		return s.tableOf(table, func(obj uint64) { each(drawn{obj, 1}) })
	}
	head, at, size, err := s.slotsOf(table)
	if err != nil {
		return err
	}
	// The table is divided into equal parts, and some reads one piece of each. The number of parts is rounded at random.
	// If many threads have ended, most bins are empty, and a piece has several bins.
	n := min(float64(head.n)*min(moreBins*share, 1), maxBins)
	parts := min(int(n+rand.Float64()), maxPieces)
	long := max(1, uint64(n)/max(uint64(parts), 1))
	pieces, first := make([]process.Range, parts), make([]uint64, parts)
	room := make([]byte, uint64(parts)*long*size)
	for i := range pieces {
		first[i] = min(uint64((float64(i)+rand.Float64())/float64(parts)*float64(head.n)), uint64(head.n)-long)
		pieces[i] = process.Range{Addr: at + first[i]*size, Buf: room[uint64(i)*long*size:][:long*size]}
	}
	s.c.vm.t.ReadMany(pieces)
	for i := range pieces {
		if !pieces[i].OK {
			s.census.fail(ErrMoved)
			continue
		}
		for k := range long {
			one := drawn{}
			err := l.bin(pieces[i].Buf[k*size:][:size], uint32(first[i]+k), head.n, maxGrown, func(obj uint64) {
				if one.stands++; rand.Float64() < 1/one.stands {
					one.obj = obj
				}
			})
			if one.stands > 0 {
				each(one)
			}
			if err != nil {
				s.census.fail(err)
			}
		}
	}
	if now, err := s.arrayAt(table); err != nil || now != head {
		return ErrMoved
	}
	return nil
}

// bin walks the bin of a slot. While the table grows, the bin's elements may be in the next, larger table. There they
// are in the bins whose numbers are this one's plus multiples of the table's length (ConcurrentHashMap.transfer).
func (l *VirtualSampler) bin(slot []byte, number, of uint32, depth int, each func(obj uint64)) error {
	s := l.s
	if isNull(slot) {
		return nil
	}
	node, err := s.c.vm.oopIn(slot, 0)
	if err != nil {
		return err
	}
	return s.bin(node, func(next uint64) error {
		head, at, size, err := s.slotsOf(next)
		if err != nil {
			return err
		}
		if depth == 0 || of == 0 || head.n > of<<maxGrown {
			return fmt.Errorf("%w: tables in tables without end", ErrBadThread)
		}
		for k := uint64(number); k < uint64(head.n); k += uint64(of) {
			b := make([]byte, size)
			if err := s.c.vm.mem.Bytes(at+k*size, b); err != nil {
				return s.c.vm.moved(err)
			}
			if err := l.bin(b, uint32(k), head.n, depth-1, each); err != nil {
				return err
			}
		}
		return nil
	}, each)
}

// lookAt visits one thread. It returns false if a collection has moved objects since begin.
func (l *VirtualSampler) lookAt(obj uint64, stands float64) bool {
	s := l.s
	if class, err := s.classOf(obj); err == nil && !class.is(classVirtual) {
		return l.still() // a set may also have platform threads
	}
	l.visited++
	t := s.readThread(obj)
	scopes, blocker := l.own(obj)
	if !l.still() {
		return false
	}
	if t.Err == nil && (t.State == virtualTerminated || t.State == virtualNew) {
		return true
	}
	if l.Blockers && blocker != 0 && (t.State == virtualParked || t.State == virtualTimedParked) {
		if class, err := s.classOf(blocker); err == nil && len(class.names) > 0 && l.still() {
			t.For = class.names[0]
		}
	}
	t.Stack = &s.c.heap
	l.visit(&t, stands)
	if scopes != 0 {
		l.ofScopes(obj, stands)
	}
	return true
}

// own reads the last scope that a thread owns, and the object for which the thread is parked.
func (l *VirtualSampler) own(obj uint64) (scopes, blocker uint64) {
	o, err := l.s.read(obj)
	if err != nil {
		return 0, 0
	}
	scopes, _, _ = o.ref("headStackableScopes")
	blocker, _, _ = o.ref("parkBlocker")
	return scopes, blocker
}

// ofScopes visits a sample of the threads in the scopes that owner owns. stands is the weight of owner. The sample
// stands for the number of threads in these scopes, times stands.
func (l *VirtualSampler) ofScopes(owner uint64, stands float64) {
	s := l.s
	if err := s.enter(); err != nil {
		s.census.fail(err)
		return
	}
	defer s.leave()
	chosen, _ := l.choose(func() { s.scopes(owner) }, drawnOfScope, stands)
	for i, d := range chosen {
		if l.visited >= l.most {
			l.visit(&VirtualThread{Err: errMany}, standFor(chosen[i:]))
			return
		} else if !l.lookAt(d.obj, d.stands) {
			l.visit(&VirtualThread{Err: ErrMoved}, standFor(chosen[i:]))
			return
		}
	}
}
