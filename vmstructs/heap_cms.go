package vmstructs

import "math"

// CMS keeps free chunks among the objects of its old generation. A free chunk contains remains of former objects. So an
// object can only be found by a walk from the beginning of the generation (up to 13; gc/cms/freeChunk.hpp,
// oops/markOop.hpp).

// cmsLayout: fields of ConcurrentMarkSweepGeneration, Space and FreeChunk.
type cmsLayout struct {
	space     offset `vm:"ConcurrentMarkSweepGeneration._cmsSpace"`
	end       offset `vm:"Space._end"`
	size      offset `vm:"FreeChunk._size"` // in words
	prev      offset `vm:"FreeChunk._prev"` // its lowest bit is set if the chunk is free
	chunkSize uint64 `vm:"FreeChunk"`       // no object or chunk is smaller
}

// chunkModel describes the form of a free chunk. The zero value means that there are none.
type chunkModel struct {
	least  uint64
	inMark bool // with compressed references, the mark shows that the chunk is free, and its size
}

// With compressed references, a free chunk has a mark that no object has. The bits above the mark hold the chunk's size
// in words (markOop.hpp, cms_free_prototype, size_shift).
const (
	freeMark, freeMarkMask = 0x81, 0xff
	freeSizeShift          = 8
)

// freeChunk returns the size of the free chunk at the beginning of b, 0 if there is none.
func (m *chunkModel) freeChunk(b []byte) uint64 {
	if m.least == 0 || len(b) < klassBytes {
		return 0
	}
	words := word(b)
	switch {
	case m.inMark && words&freeMarkMask == freeMark:
		words >>= freeSizeShift
	case m.inMark || word(b[8:])&1 == 0:
		return 0
	}
	if words < m.least/8 || words > maxHeapBytes/8 {
		return 0
	}
	return 8 * words
}

// freeMemory is the class of free chunks.
var freeMemory = ObjectClass{Filler: true, Sum: math.MaxUint64}

// cmsArea adds CMS's old generation.
func (h *Heap) cmsArea(areas []*HeapArea, old uint64) ([]*HeapArea, string) {
	l := &h.vm.l.areas.cms
	n := len(areas)
	if l.size == 0 && l.prev == 8 && l.chunkSize >= klassBytes {
		areas = h.space(areas, h.health.pointerAt(old, l.space), h.vm.l.health.serial.bottom, l.end, OldPart)
	}
	if len(areas) == n {
		return areas, "this JVM does not say where the free memory of its old generation is: only young objects are counted"
	}
	areas[n].chunks = chunkModel{least: l.chunkSize, inMark: h.vm.java.heap.narrow}
	return areas, ""
}

// InOrder reports whether objects can only be found by a walk from the beginning of the area.
func (a *HeapArea) InOrder() bool { return a.chunks.least > 0 }
