package vmstructs

import (
	"fmt"
	"math/rand/v2"

	"goprof/process"
)

// Lots draws virtual threads that no carrier runs by lot. There may be a million of them, so a draw reads a bounded
// number. The JDK keeps virtual threads in concurrent hash sets (containers.go). Each set counts its elements
// (ConcurrentHashMap.baseCount and counterCells), so the number is known without a visit. A draw reads some bins of
// each set, at random places of its table. The bin of a thread follows from its number, so threads of one bin may be
// alike, for example if every fourth thread does the same. So a draw visits one thread of each bin, which stands for
// the whole bin. On average each thread counts equally, and all visited threads together stand for all threads of the
// sets.
//
// If a virtual thread owns a StructuredTaskScope, only that owner leads to the scope's threads. A draw reads some of
// them. Together they stand for all threads of the scope, times the number of threads that the owner stands for.
//
// A Lots uses a Continuations: both belong to one goroutine.
type Lots struct {
	// Blockers and Names: VirtualThread.For is wanted, and VirtualThread.Name.
	Blockers, Names bool

	s       *search
	looked  int // how often classes were looked for
	visit   func(v *VirtualThread, stands float64)
	visited int
	most    int // visits of one draw
	moment  heapMoment
}

// Lot is what a draw tells beside the threads that it visits.
type Lot struct {
	Threads float64 // how many the sets have, with those that carriers run
	// Left is the part of them for which no thread stands, because a collection began. The next draw may stand for them.
	Left      float64
	Untracked int64 // how many are in no set, by a counter of the JDK: they cannot be drawn
	Census
}

// errMany: a draw does not visit all threads that it was to.
var errMany = fmt.Errorf("%w: too many in scopes within scopes", ErrBadThread)

type threadSet struct {
	table uint64
	n     int64
}

const (
	// lotTries is how often a draw begins again because a collection has moved the threads.
	lotTries = 4
	// scopeLot is how many threads of one scope are drawn.
	scopeLot = 16
	// A draw looks at so many nodes, slots and containers at most.
	lotNodes, lotSlots, lotContainers = 1 << 16, 1 << 22, 1 << 14
	// lotDepth bounds the bins behind a bin of tables that grow.
	lotDepth = 8
	// mostThreads bounds how many threads the sets say that they have: the counters may hold anything.
	mostThreads = 1 << 31
	// mostSearches is how often classes are looked for that were not there before.
	mostSearches = 20
)

const classCounting = "jdk/internal/vm/ThreadContainers$RootContainer$CountingRootContainer"

// NewLots makes a Lots that reads by c. It is nil if c is nil. With ZGC it draws only while c was told that the
// collector rests.
func NewLots(c *Continuations) *Lots {
	if c == nil {
		return nil
	}
	return &Lots{s: &search{c: c}}
}

// Draw visits about most of the virtual threads that no carrier runs, and says how many each stands for. visit also
// gets threads that could not be read, with the error, and threads that a carrier runs, marked as Mounted. No thread is
// stopped, so each is shown as it was at a different moment. platform are the threads that may own a
// StructuredTaskScope. If Draw returns an error, it has drawn nothing.
func (l *Lots) Draw(platform []Thread, most int, visit func(v *VirtualThread, stands float64)) (Lot, error) {
	s := l.s
	*s = search{c: s.c, klasses: s.klasses, states: s.states, suspended: s.suspended,
		nodes: maxSetNodes - lotNodes, slots: maxSlots - lotSlots, containers: maxContainers - lotContainers,
		seen: map[uint64]bool{}, shown: map[uint64]bool{}, nameless: !l.Names}
	l.visit, l.visited, l.most = visit, 0, 2*most
	if err := l.Prepare(); err != nil {
		return Lot{}, err
	}
	defer s.c.vm.letGoColours()
	if !l.begin() {
		return Lot{}, ErrMoved
	}
	if started, err := l.started(); err != nil || !started {
		return Lot{}, err
	}
	var lot Lot
	part := 1.0 // of all threads that are still to be stood for
	for tries := 0; part > 0; tries++ {
		if tries == lotTries || !l.begin() {
			if part == 1 {
				return Lot{}, ErrMoved
			}
			lot.Left = part
			break
		}
		clear(s.seen)
		s.census = Census{}
		chosen, all := l.choose(func() { s.lists(platform) }, max(1, most-l.visited), part)
		if len(s.census.Failed) > 0 && (tries < lotTries-1 || len(chosen) == 0) ||
			len(chosen) == 0 && (all > 0 || !l.still()) {
			continue // a collector was at work, mostly; of few threads a draw may also meet only empty bins
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

// begin begins a reading. It reports false if a collector is at work.
func (l *Lots) begin() bool {
	vm := l.s.c.vm
	vm.letGoColours()
	l.moment = vm.heapMoment()
	return l.moment.quiet && (!l.s.c.IsZGC() || l.s.c.locks.rests) && vm.holdColours(&l.s.c.colours) == nil
}

// still reports whether no collection has begun since begin.
func (l *Lots) still() bool {
	vm := l.s.c.vm
	same := vm.letGoColours()
	return vm.holdColours(&l.s.c.colours) == nil && same && vm.nothingMoved(l.moment)
}

// Prepare finds what is found once. It looks through all loaded classes, so it may take longer than a draw.
func (l *Lots) Prepare() error {
	c := l.s.c
	if err := c.prepare(); err != nil || l.s.klasses != nil {
		return err
	}
	return l.findClasses()
}

func (l *Lots) findClasses() error {
	l.s.listed = 0
	found, err := l.s.findKlasses(classContainers, classTrackingRoot, classCounting, classVirtual)
	if err == nil {
		l.s.klasses = found
	}
	return err
}

// started reports whether there have been any virtual threads. VirtualThread is always there. When it is used first it
// makes a scheduler. Then the classes of the containers are loaded, too.
func (l *Lots) started() (bool, error) {
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

// drawn is a thread that is to be visited, and for how many it stands.
type drawn struct {
	obj    uint64
	stands float64
}

// standFor is for how many threads all of them stand.
func standFor(chosen []drawn) (sum float64) {
	for _, d := range chosen {
		sum += d.stands
	}
	return min(sum, mostThreads)
}

// choose draws threads of the sets that lists leads to, and returns how many there are in all. Together the chosen
// threads stand for that many, times part.
func (l *Lots) choose(lists func(), most int, part float64) (chosen []drawn, all int64) {
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
	rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] }) // not all may be visited
	each := part * float64(all) / max(standFor(chosen), 1)
	for i := range chosen {
		chosen[i].stands = min(chosen[i].stands*each, mostThreads)
	}
	return chosen, all
}

// counted reads where a set has its elements, and how many these are.
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

// maxCells bounds the cells of a counter: there are as many as CPUs, or twice that.
const maxCells = 1 << 12

// sum returns the value of a counter with cells, for threads that would be in each other's way
// (java.util.concurrent.atomic.Striped64, and the same in ConcurrentHashMap).
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
	// moreBins is how many bins are read for each thread that is wanted, where each bin had one: many bins are empty.
	moreBins = 1.4
	// maxPieces bounds the pieces of a table that are read, and maxBins the bins in all of them.
	maxPieces, maxBins = 512, 1 << 18
)

// some calls each for one element of each bin that is read, or for all elements if the share is all.
func (l *Lots) some(table uint64, share float64, each func(drawn)) error {
	s := l.s
	if share >= 1 {
		return s.tableOf(table, func(obj uint64) { each(drawn{obj, 1}) })
	}
	head, at, size, err := s.slotsOf(table)
	if err != nil {
		return err
	}
	// One piece of each of some equal parts of the table. A share of a bin is a bin at times. If many threads have ended
	// most bins are empty, and a piece has more than one.
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
			err := l.bin(pieces[i].Buf[k*size:][:size], uint32(first[i]+k), head.n, lotDepth, func(obj uint64) {
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

// bin walks the bin that a slot of a table leads to. While the table grows, its elements may be in the next table,
// which is larger: in the bins whose numbers are as many beyond this one's as the table has, or a multiple (transfer).
func (l *Lots) bin(slot []byte, number, of uint32, depth int, each func(obj uint64)) error {
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
		if depth == 0 || of == 0 || head.n > of<<lotDepth {
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

// lookAt visits one thread. It reports false if a collection has moved objects meanwhile.
func (l *Lots) lookAt(obj uint64, stands float64) bool {
	s := l.s
	if class, err := s.classOf(obj); err == nil && !class.is(classVirtual) {
		return l.still() // a set may have threads of both kinds
	}
	l.visited++
	var t VirtualThread
	for range virtualTries {
		if t = s.lookOnce(obj); t.Err == nil {
			break
		}
	}
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
		l.kin(obj, stands)
	}
	return true
}

// own reads which scopes a thread owns, the last one, and what it is parked for.
func (l *Lots) own(obj uint64) (scopes, blocker uint64) {
	o, err := l.s.read(obj)
	if err != nil {
		return 0, 0
	}
	scopes, _, _ = o.ref("headStackableScopes")
	blocker, _, _ = o.ref("parkBlocker")
	return scopes, blocker
}

// kin visits some threads of the scopes that owner owns. Together they stand for all threads of these scopes, times
// stands, the number of threads that the owner stands for.
func (l *Lots) kin(owner uint64, stands float64) {
	s := l.s
	if err := s.enter(); err != nil {
		s.census.fail(err)
		return
	}
	defer s.leave()
	chosen, _ := l.choose(func() { s.scopes(owner) }, scopeLot, stands)
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
