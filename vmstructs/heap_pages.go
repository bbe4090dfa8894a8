package vmstructs

import "math/bits"

// ZGC's table of pages has an entry for each 2 MB of the address space that its heap may use (gc/z/zPageTable.hpp). A
// page has its offset, and the offset up to which it is filled. An object's header has no colour.

const (
	maxGranules   = 1 << 23 // entries of the table for the largest heap, 16 TB
	granuleBatch  = 1 << 15 // entries that are read with one call
	leastGranules = 512     // the same near the end of the table: a page of memory
	// oldPage is ZGenerationId::old, and oldAge is ZPageAge::old (gc/z/zGenerationId.hpp, zPageAge.hpp).
	oldPage, oldAge = 1, 15
	// mediumPage and largePage are ZPageType::medium and large (ZPageTypeMedium and ZPageTypeLarge before 21). A large
	// page holds a single object. A medium page has room for 2^mediumObjects objects (gc/z/zHeuristics.cpp,
	// set_medium_page_size).
	mediumPage, largePage = 1, 2
	mediumObjects         = 13
)

// mediumPitch returns the alignment of objects in a medium page. ZObjectAlignmentMediumShift is exported, but with its
// value from before the JVM sets it. So mediumPitch computes it as the JVM does: the page is a 32nd of the largest
// heap, rounded down to a power of two, at most 32 MB (set_medium_page_size).
func (h *Heap) mediumPitch() uint64 {
	page := min(max(h.Capacity()/32, 1<<granule), 16<<granule)
	return 1 << (bits.Len64(page) - 1 - mediumObjects)
}

// zTables returns the layout of ZGC's tables, and the address of the pointer to ZGlobalsForVMStructs.
func (vm *VM) zTables() (l *zPagesLayout, globals uint64) {
	if vm.java.heap.z.shift == 0 && vm.l.oops.xGlobals != 0 {
		return &vm.l.locks.x, vm.l.oops.xGlobals
	}
	return &vm.l.locks.z, vm.l.oops.zGlobals
}

// findPages finds the address of offset 0 in ZGC's heap: ZAddressHeapBase (gc/z/zAddress.cpp). Up to 20 it is the
// beginning of the heap's first view, ZAddressMetadataMarked0 (zGlobals.cpp).
func (h *Heap) findPages() error {
	if !h.vm.java.heap.z.on {
		return nil
	}
	l, globals := h.vm.zTables()
	if !l.ok() || globals == 0 {
		return ErrNoAreas
	}
	mask := h.health.pointerAt(h.health.pointerAt(h.health.pointerAt(globals, 0), l.offsets), 0)
	if mask == 0 || mask&(mask+1) != 0 || mask>>48 != 0 {
		return ErrNoAreas
	}
	h.zBase = mask + 1
	return nil
}

// onPage returns the address at which goprof reads the memory that a thread has at addr. Before 21, ZGC maps its heap
// several times.
func (h *Heap) onPage(addr uint64) uint64 {
	if h.zBase == 0 || addr == 0 {
		return addr
	}
	return addr&(h.zBase-1) | h.zBase
}

func (h *Heap) zAreas() (areas []*HeapArea, unread string, err error) {
	l, _ := h.vm.zTables()
	heap := h.health.pointerAt(h.vm.l.health.heap, 0)
	if h.zBase == 0 || heap == 0 {
		return nil, "", ErrNoAreas
	}
	table := h.zHeap().tableAt(heap + uint64(chain(l.heap, l.table, l.at, l.pages)))
	if table.at == 0 || l.pages != 8 {
		return nil, "", ErrNoAreas
	}
	pages, err := h.pageList(table.at, table.entries)
	if err != nil && len(pages) == 0 {
		return nil, "", err
	} else if err != nil {
		unread = "a part of ZGC's table of pages could not be read: objects there are not counted"
	}
	begin, size := min(l.start, l.top), 0
	kind, ages := h.vm.l.areas.pageType, h.vm.l.areas.pageAges
	if kind.ok() {
		begin = min(begin, kind)
	}
	if l != &h.vm.l.locks.z { // the ZGC without generations of 21 to 23
		ages = absent
	}
	if size = span(l.start, l.top) - int(begin); size > maxRegionSpan {
		return nil, "", ErrNoAreas
	}
	unknown, pitch := false, h.mediumPitch()
	h.health.eachAt(pages, begin, size, func(page uint64, b []byte, ok bool) {
		a := &HeapArea{Start: h.zBase + (l.start - begin).u64(b), Top: h.zBase + (l.top - begin).u64(b), region: page}
		honest := ok && (!kind.ok() || b[kind-begin] <= largePage)
		if a.Start >= a.Top || a.Top > 2*h.zBase || a.Start%(1<<granule) != 0 || a.Top%8 != 0 || !honest {
			return
		}
		if ages.ok() {
			generation, age := b[ages-begin], b[ages-begin+1]
			if a.Part = YoungPart; generation == oldPage {
				a.Part = OldPart
			}
			unknown = unknown || generation > oldPage || age > oldAge || (generation == oldPage) != (age == oldAge)
		}
		if kind.ok() && b[kind-begin] == largePage {
			a.Part = HumongousPart
		} else if kind.ok() && b[kind-begin] == mediumPage {
			a.pitch = pitch
		}
		areas = append(areas, a)
	})
	for _, a := range areas {
		if unknown && a.Part != HumongousPart {
			a.Part = WholeHeap // this release has other generations and ages
		}
	}
	return areas, unread, nil
}

// pageList lists the pages in a table. A page of several granules is in several entries. If an entry cannot be read,
// pageList returns an error and the pages before that entry.
func (h *Heap) pageList(table, length uint64) (pages []uint64, err error) {
	raw := make([]byte, 8*granuleBatch)
	last, batch := uint64(0), uint64(granuleBatch)
	for from, n := uint64(0), uint64(0); from < length; from += n {
		n = min(length-from, batch)
		if err := h.vm.mem.Bytes(table+8*from, raw[:8*n]); err != nil {
			if batch == leastGranules {
				return pages, err
			}
			batch, n = leastGranules, 0
			continue
		}
		for at := uint64(0); at < 8*n; at += 8 {
			page := word(raw[at:])
			if page == 0 || page == last || page%8 != 0 {
				continue
			}
			if last = page; len(pages) == maxAreas {
				return nil, ErrManyRegions
			}
			pages = append(pages, page)
		}
	}
	return pages, nil
}

func (h *Heap) samePage(a *HeapArea) bool {
	l, _ := h.vm.zTables()
	return h.zBase+h.health.pointerAt(a.region, l.start) == a.Start && h.zBase+h.health.pointerAt(a.region, l.top) >= a.Top
}
