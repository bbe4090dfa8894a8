package vmstructs

import (
	"slices"

	"goprof/process"
)

type regionRow struct {
	at, bottom, top, end uint64
	tag                  uint32
}

type regionFields struct{ bottom, top, end, tag offset }

// eachRegion reads the regions to which a table points, and calls f for each valid one. A null pointer stands for a
// region that was never committed. whole is false if a region could not be read.
func (h *Health) eachRegion(table, length uint64, fields regionFields, f func(regionRow)) (whole bool, err error) {
	switch {
	case table == 0 || length == 0:
		return false, ErrNoAreas
	case length > maxAreas:
		return false, ErrManyRegions
	}
	begin := min(fields.bottom, fields.top, fields.end)
	end := span(fields.bottom, fields.top, fields.end)
	if fields.tag.ok() {
		begin, end = min(begin, fields.tag), max(end, int(fields.tag)+4)
	}
	size := end - int(begin)
	if begin < 0 || size > maxRegionSpan {
		return false, ErrNoAreas
	}
	words := make([]byte, 8*length)
	if err := h.vm.mem.Bytes(table, words); err != nil {
		return false, err
	}
	regions := make([]uint64, 0, length)
	for ; len(words) > 0; words = words[8:] {
		if region := word(words); region != 0 {
			regions = append(regions, region)
		}
	}
	whole = true
	h.eachAt(regions, begin, size, func(at uint64, b []byte, ok bool) {
		row := regionRow{at: at, bottom: (fields.bottom - begin).u64(b), top: (fields.top - begin).u64(b),
			end: (fields.end - begin).u64(b)}
		if fields.tag.ok() {
			row.tag = (fields.tag - begin).u32(b)
		}
		if ok && row.bottom != 0 && row.bottom%8 == 0 && row.top%8 == 0 && row.bottom <= row.top &&
			row.top <= row.end && row.end-row.bottom <= maxHeapBytes {
			f(row)
		} else {
			whole = false
		}
	})
	return whole, nil
}

// eachAt reads size bytes of each structure, beginning at offset begin, many structures with one call. ok is false for
// a structure that cannot be read.
func (h *Health) eachAt(addrs []uint64, begin offset, size int, f func(addr uint64, b []byte, ok bool)) {
	if len(h.raw) < regionBatch*size {
		h.raw = make([]byte, regionBatch*size)
	}
	for batch := range slices.Chunk(addrs, regionBatch) {
		h.ranges = h.ranges[:0]
		for i, addr := range batch {
			buf := h.raw[i*size : (i+1)*size : (i+1)*size]
			h.ranges = append(h.ranges, process.Range{Addr: addr + uint64(begin), Buf: buf})
		}
		h.vm.t.ReadMany(h.ranges)
		for i := range h.ranges {
			f(batch[i], h.ranges[i].Buf, h.ranges[i].OK)
		}
	}
}

// eachG1Region is eachRegion for G1.
func (h *Health) eachG1Region(heap uint64, f func(regionRow)) (whole bool, err error) {
	l := &h.vm.l.health.g1
	if !l.regions.ok() || !l.length.ok() || !l.base.ok() || !l.bottom.ok() || !l.top.ok() || !l.end.ok() {
		return false, ErrNoAreas
	}
	table := heap + uint64(l.regions)
	length, err := h.vm.mem.U64(table + uint64(l.length))
	if err != nil {
		return false, err
	}
	return h.eachRegion(h.pointerAt(table, l.base), length, regionFields{l.bottom, l.top, l.end, l.kind}, f)
}

// extend adds a region to the previous area, if that is the beginning of the same humongous object.
func extend(areas []*HeapArea, r regionRow) {
	if n := len(areas); n > 0 && areas[n-1].Part == HumongousPart && areas[n-1].Top <= r.bottom {
		areas[n-1].Top = r.top
	}
}

// g1Areas lists G1's regions. A humongous object begins in one region and continues in the next ones, and all of them
// are one area. JDK 8 does not export the type of a region. But the end of a humongous object's first region is the end
// of the object (gc_implementation/g1/heapRegion.cpp, set_startsHumongous).
func (h *Heap) g1Areas(heap uint64) (areas []*HeapArea, err error) {
	l, more := &h.vm.l.health.g1, &h.vm.l.areas
	grain, _ := h.vm.mem.U64(max(l.grain, 1))
	covered := uint64(0) // the end of the last humongous object
	_, err = h.health.eachG1Region(heap, func(r regionRow) {
		part := OldPart
		switch {
		case l.kind.ok() && more.hasRest && r.tag == more.rest:
			extend(areas, r)
			return
		case l.kind.ok() && more.big != 0 && r.tag&more.big != 0:
			part = HumongousPart
		case l.kind.ok() && l.young != 0 && r.tag&l.young != 0:
			part = YoungPart
		case !l.kind.ok() && grain > 0 && r.end-r.bottom > grain:
			part, covered = HumongousPart, r.end
		case !l.kind.ok() && r.bottom < covered:
			return
		case !l.kind.ok():
			part = WholeHeap
		}
		if r.top > r.bottom {
			areas = append(areas, &HeapArea{Start: r.bottom, Top: r.top, Part: part, region: r.at, tag: r.tag})
		}
	})
	return areas, err
}

func (h *Heap) sameG1(a *HeapArea) bool {
	f := &h.vm.l.health.g1
	bottom, top := h.health.pointerAt(a.region, f.bottom), h.health.pointerAt(a.region, f.top)
	if bottom != a.Start || top < a.Top && a.Part != HumongousPart || top == bottom {
		return false
	}
	if !f.kind.ok() {
		return true
	}
	tag, err := h.vm.mem.U32(a.region + uint64(f.kind))
	return err == nil && tag == a.tag
}

func (h *Heap) shenandoahFields() regionFields {
	l := &h.vm.l.areas.shen
	return regionFields{l.bottom, l.top, l.end, l.state}
}

// shenandoahAreas lists Shenandoah's regions. goprof does not read a region that is being evacuated, because its live
// objects are also in other regions.
func (h *Heap) shenandoahAreas(heap uint64) (areas []*HeapArea, err error) {
	l := &h.vm.l.areas.shen
	f := h.shenandoahFields()
	if !l.table.ok() || !l.number.ok() || !f.bottom.ok() || !f.top.ok() || !f.end.ok() || !f.tag.ok() ||
		min(l.regular, l.set, l.pinnedSet) < 0 {
		return nil, ErrNoAreas
	}
	length, err := h.vm.mem.U64(heap + uint64(l.number))
	if err != nil {
		return nil, err
	}
	h.evacuated = false
	_, err = h.health.eachRegion(h.health.pointerAt(heap, l.table), length, f, func(r regionRow) {
		part := WholeHeap
		switch state := int32(r.tag); {
		case state == l.cont:
			extend(areas, r)
			return
		case state == l.start || state == l.pinnedStart:
			part = HumongousPart
		case state != l.regular && state != l.pinned:
			h.evacuated = h.evacuated || state == l.set || state == l.pinnedSet
			return
		}
		if r.top > r.bottom {
			areas = append(areas, &HeapArea{Start: r.bottom, Top: r.top, Part: part, region: r.at, tag: r.tag})
		}
	})
	return areas, err
}

func (h *Heap) sameShenandoah(a *HeapArea) bool {
	f := h.shenandoahFields()
	tag, err := h.vm.mem.U32(a.region + uint64(f.tag))
	return err == nil && tag == a.tag && (h.health.pointerAt(a.region, f.top) >= a.Top || a.Part == HumongousPart)
}
