package vmstructs

import (
	"slices"

	"goprof/process"
)

// A thread allocates in its own buffer (TLAB). Between the buffer's top and its end is old memory, which may look like
// objects. Seams lead the walk around that memory.

// maxReserve bounds the words of a buffer after its end.
const maxReserve = 1 << 12

// addSeams reads the threads' buffers, and records their seams in each area. Areas are sorted. A buffer that was given
// out after the areas were listed is above their tops.
func (h *Heap) addSeams(areas []*HeapArea) error {
	l := &h.vm.l.areas.tlab
	if !l.start.ok() || !l.top.ok() || !l.end.ok() {
		return ErrNoAreas // without this, free memory would be counted as objects
	}
	threads, err := h.vm.Threads()
	if err != nil {
		return err
	}
	fields := []offset{l.start, l.top, l.end}
	if l.hardEnd.ok() {
		fields = append(fields, l.hardEnd)
	}
	reserve, words := h.reserve(), make([]byte, 8*len(fields)*threadBatch)
	ranges := make([]process.Range, 0, len(fields)*threadBatch)
	for batch := range slices.Chunk(threads, threadBatch) {
		ranges = ranges[:0]
		for _, t := range batch {
			for _, f := range fields {
				ranges = append(ranges, process.Range{Addr: t.Addr + uint64(f), Buf: words[8*len(ranges):][:8]})
			}
		}
		h.vm.t.ReadMany(ranges)
		for row := range slices.Chunk(ranges, len(fields)) {
			if slices.ContainsFunc(row, func(r process.Range) bool { return !r.OK }) {
				continue
			}
			field := func(i int) uint64 { return h.onPage(word(row[i].Buf)) }
			addBuffer(areas, field(0), field(1), max(field(2), field(len(row)-1))+reserve)
		}
	}
	return nil
}

// reserve returns the number of bytes of a buffer after its end: room for a filler, or for prefetches
// (threadLocalAllocBuffer.cpp, end_reserve).
func (h *Heap) reserve() uint64 {
	least := uint64(0)
	if filler := uint64(h.Objects.head); filler > h.align {
		least = filler
	}
	if h.vm.l.jdk8 {
		least = uint64(h.lengthAt) + 4 // an int[]
	}
	if at := h.vm.l.areas.tlab.reserve; at != 0 {
		if words, err := h.vm.mem.U32(at); err == nil && words < maxReserve {
			least = max(least, 8*uint64(words))
		}
	}
	return alignUp(least, h.align)
}

// addBuffer adds the seams of a thread's buffer to its area. One object ends at the buffer's start. The buffer is empty
// from top to end, and the next object begins at end. A buffer with impossible addresses is left out.
func addBuffer(areas []*HeapArea, start, top, end uint64) {
	if start == 0 || start%8 != 0 || top%8 != 0 || end%8 != 0 || top < start || end <= top || end-start > maxTLAB {
		return
	}
	a := areaOf(areas, start)
	if a == nil {
		return
	}
	if start > a.Start {
		a.addSeam(seam{start, start})
	}
	if top < a.Top {
		a.addSeam(seam{top, min(end, a.Top)})
	}
}

// Free returns the bytes of the area that are threads' free memory for new objects.
func (a *HeapArea) Free() (bytes uint64) {
	end := a.Start
	for _, s := range a.seams {
		if from := max(s.at, end); s.next > from {
			bytes, end = bytes+s.next-from, s.next
		}
	}
	return bytes
}

// addSeam keeps the seams in the order of their addresses.
func (a *HeapArea) addSeam(s seam) {
	i := len(a.seams)
	for i > 0 && a.seams[i-1].at > s.at {
		i--
	}
	a.seams = slices.Insert(a.seams, i, s)
}
