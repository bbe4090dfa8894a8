package vmstructs

import (
	"cmp"
	"slices"

	"goprof/process"
)

// A thread allocates in a buffer of its own (TLAB). Between the buffer's top and its end lies old memory. It may look
// like objects, and is none. So seams lead the walk around it.

// maxReserve bounds the words that a buffer has behind its end.
const maxReserve = 1 << 12

const bufferFields = 4

// addSeams reads the threads' buffers, and notes in each area where a walk must come by. Areas are sorted. A buffer
// that was given out after the areas were listed lies behind their tops.
func (h *Heap) addSeams(areas []*HeapArea) error {
	l := &h.vm.l.areas.tlab
	if !l.start.ok() || !l.top.ok() || !l.end.ok() {
		return ErrNoAreas // free memory would be counted as objects
	}
	threads, err := h.vm.Threads()
	if err != nil {
		return err
	}
	fields := []offset{l.start, l.top, l.end}
	if l.hardEnd.ok() {
		fields = append(fields, l.hardEnd)
	}
	if need := threadBatch * bufferFields * 8; len(h.threads) < need {
		h.threads = make([]byte, need)
	}
	reserve := h.reserve()
	ranges := make([]process.Range, 0, threadBatch*bufferFields)
	for batch := range slices.Chunk(threads, threadBatch) {
		ranges = ranges[:0]
		for i, t := range batch {
			for k, f := range fields {
				at := 8 * (i*bufferFields + k)
				ranges = append(ranges, process.Range{Addr: t.Addr + uint64(f), Buf: h.threads[at : at+8 : at+8]})
			}
		}
		h.vm.t.ReadMany(ranges)
		for i := range batch {
			if ok := ranges[i*len(fields) : (i+1)*len(fields)]; slices.ContainsFunc(ok,
				func(r process.Range) bool { return !r.OK }) {
				continue
			}
			row := h.threads[8*i*bufferFields:]
			start, top, end := h.onPage(word(row)), h.onPage(word(row[8:])), h.onPage(word(row[16:]))
			if l.hardEnd.ok() {
				if hard := h.onPage(word(row[24:])); hard > end {
					end = hard
				}
			}
			addBuffer(areas, start, top, end+reserve)
		}
	}
	return nil
}

// reserve returns how many bytes a buffer has behind its end: room for a dead object that fills its rest, or for
// prefetches (threadLocalAllocBuffer.cpp, end_reserve).
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
	return (least + h.align - 1) &^ (h.align - 1)
}

// addBuffer notes the seams that a thread's buffer makes in its area. One object ends where the buffer starts. The
// buffer is empty from top to end, and the next object begins at end. areas are ordered by address. A buffer whose
// addresses make no sense is left out.
func addBuffer(areas []*HeapArea, start, top, end uint64) {
	if start == 0 || start%8 != 0 || top%8 != 0 || end%8 != 0 || top < start || end <= top || end-start > maxTLAB {
		return
	}
	i, found := slices.BinarySearchFunc(areas, start, func(a *HeapArea, at uint64) int { return cmp.Compare(a.Start, at) })
	if !found {
		i--
	}
	if i < 0 || start >= areas[i].Top {
		return
	}
	a := areas[i]
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
