package vmstructs

import (
	"bytes"

	"goprof/process"
)

// A survey notes all generated code of the JVM at once. Sightings notes code only when a thread is found in it, and if
// goprof gets no CPU at that moment, the note is too late. After a survey even a late walk can be proven, unless the
// thread was in code that was made later.

const (
	surveyed     = 256      // blocks that are read with one call
	segmapRead   = 64 << 10 // bytes of a segment map that are read with one call
	mostSegments = 4 << 20  // segments of a heap that are read
)

// Survey notes all code in the code cache. It must be called on the goroutine that walks. Without Sightings it does
// nothing.
func (vm *VM) Survey() {
	if vm.sightings == nil {
		return
	}
	vm.takeNotes()
	s := &survey{vm: vm, head: vm.sightings.head, seen: make(map[uint64]sighting, len(vm.sighted)),
		bytes: make([]byte, surveyed*vm.sightings.head)}
	for i := range vm.heaps {
		if h := &vm.heaps[i]; vm.growHeap(h) == nil {
			s.heap(h)
		}
	}
	vm.sighted = s.seen
}

type survey struct {
	vm     *VM
	head   int // bytes of each piece that are read
	seen   map[uint64]sighting
	blocks []uint64
	bytes  []byte
	ranges []process.Range
}

// heap finds the beginnings of the blocks of a heap.
func (s *survey) heap(h *codeHeap) {
	window := make([]byte, segmapRead)
	end := min((h.high-h.low)>>h.log2, mostSegments)
	for at := uint64(0); at < end; at += segmapRead {
		part := window[:min(segmapRead, end-at)]
		if s.vm.t.Read(h.segmap+at, part) != nil {
			return
		}
		for i := 0; i < len(part); i++ {
			next := bytes.IndexByte(part[i:], 0)
			if next < 0 {
				break
			}
			i += next
			if s.blocks = append(s.blocks, h.low+(at+uint64(i))<<h.log2); len(s.blocks) == surveyed {
				s.note(h)
			}
		}
	}
	s.note(h)
}

// note reads the beginnings of blocks, and keeps the blocks in use.
func (s *survey) note(h *codeHeap) {
	s.ranges = s.ranges[:0]
	for i, block := range s.blocks {
		s.ranges = append(s.ranges, process.Range{Addr: block, Buf: s.bytes[i*s.head : (i+1)*s.head]})
	}
	s.vm.t.ReadMany(s.ranges)
	now := s.vm.now()
	for i := range s.ranges {
		r := &s.ranges[i]
		if !r.OK || !s.vm.parseBlock(h, r.Addr, r.Buf).used || len(s.seen) >= mostSighted {
			continue
		}
		at, sums := now, s.vm.sums(r.Buf)
		if old, ok := s.vm.sighted[r.Addr]; ok && old.sums == sums {
			at = old.at
		}
		s.seen[r.Addr] = sighting{at, sums}
	}
	s.blocks = s.blocks[:0]
}
