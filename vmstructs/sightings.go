package vmstructs

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync/atomic"

	"goprof/process"
)

// Sightings notes the blocks of generated code to which a stack points, as soon as its thread runs again. A note has
// the first bytes of each block, which identify the block. Each block is noted once, so if no code is new, Sightings
// only searches the copy of the stack. A late walk can then prove that its code already existed at the look (age.go).
//
// Note may be called on another goroutine than the VM's other methods, and never waits.
type Sightings struct {
	t      process.Target
	clock  func() int64
	heaps  []codeHeap
	code   span64
	interp span64
	head   int   // bytes of a block that are noted
	length sized // of a block, in segments
	whose  []int // offsets in the head of the words that identify a block's owner
	old    map[uint64]oldBlock

	dropped atomic.Bool // notes were dropped
	renewed int64       // when known was last empty
	known   *process.KnownCode
	fresh   []uint64
	ranges  []process.Range
	window  [segmapChunk]byte
	full    chan *sightingNote
	free    chan *sightingNote
}

// oldBlock is a block that was noted before.
type oldBlock struct {
	at  int64  // when it was first noted
	sum uint64 // hash of the words that identify its owner
}

type sightingNote struct {
	at     int64
	blocks []uint64
	bytes  []byte // head bytes for each block; zeros if they could not be read
}

// sighting is one block at the moment of its note.
type sighting struct {
	at   int64
	sums [2]uint64 // hashes of its blobParts, as an nmethod (1) and as another blob (0)
}

const (
	mostFresh   = 128      // pcs that are noted at a time
	mostScanned = 64 << 10 // bytes of a stack that are searched
	// noteWithin is the largest age of a snapshot that is noted, in nanoseconds. Later, there may be other code. A walk up
	// to this age needs no note (session/age.go).
	noteWithin  = int64(4e6)
	mostNotes   = 64 // notes that wait for the walker
	mostSighted = maxBlobs
	// oldAfter is the age from which on a block is likely to stay. From then on, the whole block counts as known. Before
	// that, each pc in it is noted, because recently compiled code comes and goes.
	oldAfter   = int64(10e9)
	renewEvery = int64(300e9) // after this time all code is noted again
	mostBlock  = uint64(16 << 20)
)

func (vm *VM) NewSightings() *Sightings {
	cl, bl, nl := &vm.l.code, &vm.l.blob, &vm.l.nm
	s := &Sightings{t: vm.t, clock: vm.now, heaps: slices.Clone(vm.heaps), code: vm.code, interp: vm.interp,
		head: vm.sightingHead(), length: cl.blockLength, old: map[uint64]oldBlock{},
		full: make(chan *sightingNote, mostNotes), free: make(chan *sightingNote, mostNotes)}
	for _, at := range []offset{bl.name, nl.method, nl.compileID} {
		s.whose = append(s.whose, int(cl.blockSize)+int(at))
	}
	for range mostNotes {
		s.free <- new(sightingNote)
	}
	vm.sightings, vm.sighted = s, map[uint64]sighting{}
	return s
}

// KeepIn sets the KnownCode for the noted code, and empties it. With nil, s makes its own when it needs one.
func (s *Sightings) KeepIn(k *process.KnownCode) {
	if s.known = k; k != nil {
		k.Span(s.code.begin, s.code.end, s.interp.begin, s.interp.end)
	}
}

// ReadFrom makes all later reads go through t, another Target of the same process.
func (s *Sightings) ReadFrom(t process.Target) *Sightings {
	s.t = t
	return s
}

// Note notes the new code in a snapshot that was taken at time when. It ignores a snapshot older than noteWithin.
func (s *Sightings) Note(snap *process.Snapshot, when int64) {
	s.renew(when)
	if s.clock()-when > noteWithin {
		return
	}
	s.fresh = s.fresh[:0]
	cpu := s.t.CPU()
	s.look(snap.Regs[cpu.PC])
	if cpu.ReturnsInRegister {
		s.look(snap.Regs[cpu.LR] &^ snap.PACMask)
	}
	begin, size := s.code.begin, s.code.end-s.code.begin
	for b := snap.Stack[:min(len(snap.Stack), mostScanned)&^7]; len(b) > 0; b = b[8:] {
		if w := binary.LittleEndian.Uint64(b) &^ snap.PACMask; w-begin < size {
			s.look(w)
		}
	}
	if len(s.fresh) > 0 && !s.note(when) {
		for _, pc := range s.fresh { // the next look must note them
			s.known.Forget(pc)
		}
	}
}

// renew empties known from time to time, because other code may have the same addresses now, and notes may have been
// dropped.
func (s *Sightings) renew(when int64) {
	switch {
	case s.known == nil:
		s.KeepIn(new(process.KnownCode))
	case s.dropped.Swap(false) || when-s.renewed >= renewEvery:
		s.KeepIn(s.known)
	default:
		return
	}
	s.renewed = when
}

// look lists a pc if it is new.
func (s *Sightings) look(pc uint64) {
	if len(s.fresh) < mostFresh && s.known.IsNew(pc) {
		s.known.Add(pc)
		s.fresh = append(s.fresh, pc)
	}
}

// note reads the blocks of the new pcs. It returns false if no note was free, or if it was too late.
func (s *Sightings) note(when int64) bool {
	var note *sightingNote
	select {
	case note = <-s.free:
	default:
		return false
	}
	note.blocks = note.blocks[:0]
	for _, pc := range s.fresh {
		if block, ok := s.block(pc); ok && !slices.Contains(note.blocks, block) {
			note.blocks = append(note.blocks, block)
		}
	}
	s.read(note)
	inTime := s.clock()-when <= noteWithin
	if note.at = when; !inTime {
		note.blocks = note.blocks[:0]
	}
	for i, block := range note.blocks {
		s.growOld(block, note.bytes[i*s.head:(i+1)*s.head], when)
	}
	s.full <- note // never blocks: there is room for all notes
	return inTime
}

// growOld marks a whole block as known if it has existed for oldAfter.
func (s *Sightings) growOld(block uint64, head []byte, when int64) {
	var hash maphash.Hash
	hash.SetSeed(headSeed)
	for _, at := range s.whose {
		hash.Write(head[at:min(at+4, len(head))])
	}
	sum := hash.Sum64()
	old, ok := s.old[block]
	switch {
	case !ok || old.sum != sum:
		if len(s.old) >= mostSighted {
			clear(s.old)
		}
		s.old[block] = oldBlock{when, sum}
	case when-old.at >= oldAfter:
		if h := s.heapOf(block); h != nil {
			s.known.AddAll(block, min(block+min(s.length.unsigned(head)<<h.log2, mostBlock), h.boundary))
		}
	}
}

var headSeed = maphash.MakeSeed()

// heapOf returns the heap of the code cache that holds an address, nil if there is none.
func (s *Sightings) heapOf(pc uint64) *codeHeap {
	for i := range s.heaps {
		if h := &s.heaps[i]; pc >= h.low && pc < h.boundary {
			return h
		}
	}
	return nil
}

func (s *Sightings) block(pc uint64) (uint64, bool) {
	h := s.heapOf(pc)
	if h == nil {
		return 0, false
	}
	block, err := findBlock(s.t, h, pc, s.window[:])
	return block, err == nil
}

// read reads the first bytes of each block of a note into note.bytes, all with one call. The bytes of a block that
// cannot be read are 0.
func (s *Sightings) read(note *sightingNote) {
	n := len(note.blocks) * s.head
	if cap(note.bytes) < n {
		note.bytes = make([]byte, n)
	}
	note.bytes = note.bytes[:n]
	s.ranges = s.ranges[:0]
	for i, block := range note.blocks {
		s.ranges = append(s.ranges, process.Range{Addr: block, Buf: note.bytes[i*s.head : (i+1)*s.head]})
	}
	s.t.ReadMany(s.ranges)
	for i := range s.ranges {
		if !s.ranges[i].OK {
			clear(s.ranges[i].Buf)
		}
	}
}

func (vm *VM) takeNotes() {
	for vm.sightings != nil {
		select {
		case note := <-vm.sightings.full:
			vm.keep(note)
			vm.sightings.free <- note
		default:
			return
		}
	}
}

func (vm *VM) keep(note *sightingNote) {
	head := vm.sightings.head
	for i, block := range note.blocks {
		sums := vm.sums(note.bytes[i*head : (i+1)*head])
		if old, ok := vm.sighted[block]; ok && old.sums == sums {
			continue // the block has existed since it was first noted
		}
		if len(vm.sighted) >= mostSighted {
			clear(vm.sighted)
			vm.sightings.dropped.Store(true)
		}
		vm.sighted[block] = sighting{note.at, sums}
	}
}

// sightingHead is the number of bytes of a block that identify it.
func (vm *VM) sightingHead() (n int) {
	for _, p := range vm.l.blobParts(true) {
		n = max(n, p.end)
	}
	return n
}

func (vm *VM) sums(head []byte) [2]uint64 {
	return [2]uint64{sumOf(head, vm.blobParts(false)), sumOf(head, vm.blobParts(true))}
}

func sumOf(head []byte, parts []part) uint64 {
	var hash maphash.Hash
	hash.SetSeed(headSeed)
	for _, p := range parts {
		hash.Write(head[min(p.begin, len(head)):min(p.end, len(head))])
	}
	return hash.Sum64()
}

// sightedAt returns when b was noted. It returns false if b was not noted before a moment.
func (vm *VM) sightedAt(b *Blob, before int64) (int64, bool) {
	s, ok := vm.sighted[b.fact.addr]
	if !ok || s.at >= before || b.fact.want == nil {
		return 0, false
	}
	i := 0
	if b.Kind.IsNmethod() {
		i = 1
	}
	return s.at, s.sums[i] == sumOf(b.fact.want, b.fact.parts)
}
