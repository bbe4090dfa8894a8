package vmstructs

import "slices"

// A thread allocates in a buffer of its own (TLAB). Between the buffer's top and its end lies old memory, which may
// look
// like objects. Seams lead the walk around that memory.

// maxReserve bounds the words that a buffer has behind its end.
const maxReserve = 1 << 12

// addSeams reads the threads' buffers, and notes their seams in each area. Areas are sorted. A buffer that was given
// out
// after the areas were listed lies behind their tops.
func (h *Heap) addSeams(areas []*HeapArea) error {
	l := &h.vm.l.areas.tlab
	if !l.start.ok() || !l.top.ok() || !l.end.ok() {
		return ErrNoAreas // free memory would be counted as objects
	}
	threads, err := h.vm.Threads()
	if err != nil {
		return err
	}
	addrs := make([]uint64, len(threads))
	for i, t := range threads {
		addrs[i] = t.Addr
	}
	begin := min(l.start, l.top, l.end)
	size := span(l.start, l.top, l.end, l.hardEnd) - int(begin)
	if size > maxRegionSpan {
		return ErrNoAreas
	}
	reserve := h.reserve()
	h.health.eachAt(addrs, begin, size, func(_ uint64, b []byte, ok bool) {
		if !ok {
			return
		}
		field := func(f offset) uint64 { return h.onPage((f - begin).u64(b)) }
		end := field(l.end)
		if l.hardEnd.ok() {
			end = max(end, field(l.hardEnd))
		}
		addBuffer(areas, field(l.start), field(l.top), end+reserve)
	})
	return nil
}

// reserve returns how many bytes a buffer has behind its end: room for a filler, or for prefetches
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

// addBuffer adds the seams of a thread's buffer to its area. One object ends where the buffer starts. The buffer is
// empty
// from top to end, and the next object begins at end. A buffer whose addresses make no sense is left out.
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

// Free returns how much of the area threads have for objects to come.
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
