package vmstructs

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync/atomic"

	"goprof/process"
)

// Sightings notes the pieces of generated code that a stack points into, as soon as its thread runs again. It keeps the
// first bytes of each piece, which identify the piece. It notes each piece once. So if no code is new, it only searches
// the copy of the stack. With the note, a walk that comes late can show that the code it found was there at the look
// already (age.go).
//
// Note is called on another goroutine than all other methods of the VM, and never waits.
type Sightings struct {
	t      process.Target
	clock  func() int64
	heaps  []codeHeap
	code   span64
	interp span64
	head   int   // bytes that are noted
	length sized // of a block, in segments
	whose  []int // where in the head the words lie that tell whose a block is
	old    map[uint64]oldBlock
	// dropped: notes were thrown away. known was empty last at renewed.
	dropped atomic.Bool
	renewed int64
	known   *process.KnownCode
	fresh   []uint64
	ranges  []process.Range
	window  [segmapChunk]byte
	full    chan *sightingNote
	free    chan *sightingNote
}

// oldBlock is a piece of code that was noted before.
type oldBlock struct {
	at  int64  // when it was noted first
	sum uint64 // of what says whose it is
}

type sightingNote struct {
	at     int64
	blocks []uint64
	bytes  []byte // head for each block; zeros where they could not be read
}

// sighting is one piece of code as it was then.
type sighting struct {
	at   int64
	sums [2]uint64 // of its blobParts, as an nmethod (1) and as another blob (0)
}

const (
	// mostFresh bounds how many pieces are noted at a time. mostScanned bounds how much of a stack is searched.
	mostFresh   = 128
	mostScanned = 64 << 10
	// noteWithin is how old a snapshot may be to be noted, in nanoseconds: afterwards other code may be there. A walk
	// counts up to this age without a note (session/age.go).
	noteWithin = int64(4e6)
	// mostNotes wait for the walker; mostSighted pieces are kept.
	mostNotes   = 64
	mostSighted = maxBlobs
	// oldAfter: what has been there for so long is likely to stay. Then it is known as a whole, wherever in it a stack
	// points. Before, each place in it is noted again, since code that is still being compiled comes and goes.
	oldAfter = int64(10e9)
	// renewEvery is how often all code is noted again.
	renewEvery = int64(300e9)
	// mostBlock bounds the size of a piece of code.
	mostBlock = uint64(16 << 20)
)

// NewSightings begins to take notes.
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

// KeepIn keeps what is known in that place from now on, and begins with nothing. nil: in a place of its own, once there
// is something to keep.
func (s *Sightings) KeepIn(k *process.KnownCode) {
	if s.known = k; k != nil {
		k.Span(s.code.begin, s.code.end, s.interp.begin, s.interp.end)
	}
}

// ReadFrom sets another way to the same process, by which memory is read from now on.
func (s *Sightings) ReadFrom(t process.Target) *Sightings {
	s.t = t
	return s
}

// Note takes a note of what is new in a snapshot that was taken just now, at that moment. For an older snapshot there
// is no note, so it is not searched.
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
		for _, pc := range s.fresh { // the next look has to
			s.known.Forget(pc)
		}
	}
}

// renew forgets what is known from time to time: other code may lie there now, and notes may have been thrown away.
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

// look puts a pc on the list if it is new.
func (s *Sightings) look(pc uint64) {
	if len(s.fresh) < mostFresh && s.known.IsNew(pc) {
		s.known.Add(pc)
		s.fresh = append(s.fresh, pc)
	}
}

// note reads the blocks of all that is new. False: no note was free, or it came too late.
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
	s.full <- note // there are no more notes than places
	return inTime
}

// growOld makes all of a piece of code known that has been there for long.
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

// heapOf returns the part of the code cache that holds an address.
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

// takeNotes keeps what has been noted by now.
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
			continue // the piece has been there since it was first noted
		}
		if len(vm.sighted) >= mostSighted {
			clear(vm.sighted)
			vm.sightings.dropped.Store(true)
		}
		vm.sighted[block] = sighting{note.at, sums}
	}
}

// sightingHead is how many bytes of a block identify what lies in it.
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

// sightedAt returns when b was noted, if that was before a moment.
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
