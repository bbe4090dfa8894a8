package vmstructs

import (
	"encoding/binary"
	"slices"

	"goprof/process"
)

// Sightings notes, as soon as a thread runs again, what generated code its stack points into: the first bytes of
// each piece, which identify it. Each piece is noted once, so where no code is new this costs one pass over the copy of
// the stack. With the note, a walk that comes late can show that the code it found was there at the look already
// (age.go).
//
// Note is called on another goroutine than all else of the VM, and never waits.
type Sightings struct {
	t      process.Target
	clock  func() int64
	heaps  []codeHeap
	code   span64
	interp span64
	head   int // bytes that are noted
	known  [knownCells]uint64
	fresh  []uint64
	ranges []process.Range
	window [segmapChunk]byte
	full   chan *sightingNote
	free   chan *sightingNote
}

// sightingNote is what was noted of one look.
type sightingNote struct {
	at     int64
	blocks []uint64
	bytes  []byte // head for each block; zeros where they could not be read
}

// sighting is one piece of code as it was then.
type sighting struct {
	at   int64
	head []byte
}

const (
	// knownCells is how many pieces of code are remembered, by their place. Where two pieces share a cell, they are
	// noted more often.
	knownCells = 1 << 12
	// mostFresh bounds how many pieces are noted at a time. mostScanned bounds how much of a stack is searched.
	mostFresh   = 128
	mostScanned = 64 << 10
	// noteWithin is how old a snapshot may be to be noted, in nanoseconds: afterwards other code may be there.
	noteWithin = int64(4e6)
	// mostNotes wait for the walker; mostSighted pieces are kept.
	mostNotes   = 64
	mostSighted = 1 << 13
)

// NewSightings begins to take notes.
func (vm *VM) NewSightings() *Sightings {
	cl, bl, nl := &vm.l.code, &vm.l.blob, &vm.l.nm
	head := 0
	for _, end := range []int{int(bl.name) + 8, int(bl.length) + 4, int(nl.method) + 8, int(nl.entryBCI) + 4,
		int(nl.compileID) + 4, int(nl.immutable) + 8, int(bl.mutable) + 8} {
		head = max(head, int(cl.blockSize)+end)
	}
	s := &Sightings{t: vm.t, clock: vm.now, heaps: slices.Clone(vm.heaps), code: vm.code, interp: vm.interp, head: head,
		full: make(chan *sightingNote, mostNotes), free: make(chan *sightingNote, mostNotes)}
	for range mostNotes {
		s.free <- new(sightingNote)
	}
	vm.sightings, vm.sighted = s, map[uint64]sighting{}
	return s
}

// ReadFrom sets another way to the same process, by which memory is read from now on.
func (s *Sightings) ReadFrom(t process.Target) *Sightings {
	s.t = t
	return s
}

// Note takes a note of what is new in a snapshot that was taken just now, at that moment.
func (s *Sightings) Note(snap *process.Snapshot, when int64) {
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
			s.known[cellOf(pc)] = 0
		}
	}
}

// cellOf is the cell in which a pc is remembered. Blobs begin at segments.
func cellOf(pc uint64) uint64 { return (pc >> cacheShift) % knownCells }

// look puts a pc on the list if it is new.
func (s *Sightings) look(pc uint64) {
	if !s.code.has(pc) || s.interp.has(pc) || len(s.fresh) == mostFresh {
		return
	}
	if cell := &s.known[cellOf(pc)]; *cell != pc>>cacheShift {
		*cell = pc >> cacheShift
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
	s.full <- note // there are no more notes than places
	return inTime
}

func (s *Sightings) block(pc uint64) (uint64, bool) {
	for i := range s.heaps {
		if h := &s.heaps[i]; pc >= h.low && pc < h.boundary {
			block, err := findBlock(s.t, h, pc, s.window[:])
			return block, err == nil
		}
	}
	return 0, false
}

// read reads the beginning of each block.
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
		got := note.bytes[i*head : (i+1)*head]
		if old, ok := vm.sighted[block]; ok && string(old.head) == string(got) {
			continue // the piece has been there since it was first noted
		}
		if len(vm.sighted) >= mostSighted {
			clear(vm.sighted)
		}
		vm.sighted[block] = sighting{note.at, slices.Clone(got)}
	}
}

// sightedAt is when b was noted, if that was before a moment.
func (vm *VM) sightedAt(b *Blob, before int64) (int64, bool) {
	s, ok := vm.sighted[b.fact.addr]
	return s.at, ok && s.at < before && b.fact.want != nil && len(s.head) >= len(b.fact.want) && b.fact.agrees(s.head)
}
