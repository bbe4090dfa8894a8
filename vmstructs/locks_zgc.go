package vmstructs

import "math/bits"

// ZGC colours references. One whose colour is bad was not looked at since the collector last moved objects, and may be
// stale. The JVM looks at it when a thread next loads it; threads that wait load nothing, so for them that is the usual
// case. While no collection is under way it can be told whether such a reference is right: pages from which objects
// were moved have left the JVM's table of pages (gc/z/zPageTable.hpp), or are other pages now.

// zPagesLayout: gc/z/zHeap.hpp, zPageTable.hpp, zPage.hpp; with X for Z the ZGC without generations of 21 to 23.
type zPagesLayout struct {
	heap       offset // ZCollectedHeap: its ZHeap
	table, at  offset // ZHeap: its ZPageTable, and where in that the pages are
	pages      offset // ZGranuleMapForPageTable
	start, top offset // ZPage
	offsets    offset // ZGlobalsForVMStructs: a pointer to the bits of a reference that are no colour
	good       offset // the same: to the colour that is good
}

func (r *resolver) zPages(z string) zPagesLayout {
	l := zPagesLayout{
		heap:    r.field("", z+"CollectedHeap._heap"),
		table:   r.field("", z+"Heap._page_table"),
		at:      r.field("", z+"PageTable._map"),
		pages:   r.field("", z+"GranuleMapForPageTable._map"),
		start:   r.field("", z+"Page._virtual"),
		top:     r.field("", z+"Page._top"),
		offsets: r.field("", z+"GlobalsForVMStructs._"+z+"AddressOffsetMask"),
		good:    r.field("", z+"GlobalsForVMStructs._ZPointerLoadGoodMask"),
	}
	return l
}

func (l *zPagesLayout) ok() bool {
	return l.heap.ok() && l.table.ok() && l.at.ok() && l.pages.ok() && l.start.ok() && l.top.ok() && l.offsets.ok()
}

// granule is how much of the heap has one entry in the table (ZGranuleSizeShift).
const granule = 21

// zPages is where the pages of the heap are told.
type zPages struct {
	on    bool
	mask  uint64 // the bits of an address that are its offset in the heap
	table uint64
	start offset
	top   offset
	// shifts: a reference is shifted by as many bits as its colour says (x86-64), else always by 16.
	shifts bool
}

// findPages finds the table, if this is ZGC and tells of it.
func (k *Locks) findPages() (p zPages) {
	z := &k.vm.java.heap.z
	if !z.on {
		return p
	}
	l, globals := &k.vm.l.locks.z, k.vm.l.oops.zGlobals
	if z.shift == 0 && k.vm.l.oops.xGlobals != 0 {
		l, globals = &k.vm.l.locks.x, k.vm.l.oops.xGlobals
	}
	if !l.ok() || globals == 0 || k.vm.l.locks.heap == 0 {
		return p
	}
	at := func(addr uint64) uint64 {
		v, err := k.vm.mem.Ptr(addr)
		if err != nil {
			return 0
		}
		return v
	}
	holder := at(globals)
	p.mask = at(at(holder + uint64(l.offsets)))
	p.table = at(at(k.vm.l.locks.heap) + uint64(l.heap) + uint64(l.table) + uint64(l.at) + uint64(l.pages))
	p.start, p.top = l.start, l.top
	if z.shift != 0 && l.good.ok() {
		good, shift := at(at(holder+uint64(l.good))), at(z.shift)
		p.shifts = good>>12&15 != 0 && shift == 13+uint64(bits.TrailingZeros64(good>>12&15))
	}
	p.on = p.mask != 0 && p.table != 0
	return p
}

// CollectorRests tells whether no thread of ZGC's works now, nor will while the next round is read.
func (k *Locks) CollectorRests(rests bool) { k.rests = rests }

// IsZGC reports whether CollectorRests makes a difference.
func (k *Locks) IsZGC() bool { return k.pages.on }

// uncolour makes an address of a reference in the heap or in a handle.
func (k *Locks) uncolour(v uint64) (uint64, error) {
	addr, err := k.vm.uncolour(v)
	if err == nil || !k.rests || !k.pages.on {
		return addr, err
	}
	addr = v
	if k.vm.java.heap.z.shift != 0 {
		shift := 16
		if k.pages.shifts {
			shift = 13 + bits.TrailingZeros64(v>>12&15)
		}
		if addr = v >> shift; v>>12&15 == 0 {
			return 0, ErrMoved
		}
	}
	if addr == 0 || addr%8 != 0 || !k.onPage(addr) {
		return 0, ErrMoved
	}
	return addr, nil
}

// onPage reports whether there is a page at an address, and it is in use up to there.
func (k *Locks) onPage(addr uint64) bool {
	at := addr & k.pages.mask
	page, err := k.vm.mem.Ptr(k.pages.table + 8*(at>>granule))
	if err != nil || page == 0 {
		return false
	}
	start, err1 := k.vm.mem.U64(page + uint64(k.pages.start))
	top, err2 := k.vm.mem.U64(page + uint64(k.pages.top))
	return err1 == nil && err2 == nil && at >= start && at < top
}

// oopIn takes a reference out of an object's bytes.
func (k *Locks) oopIn(b []byte, at uint64) (uint64, error) {
	if !k.pages.on {
		return k.vm.oopIn(b, at)
	}
	return k.uncolour(word(b[at:])) // ZGC has no narrow references
}

// root is the address in a reference of a thread's own: on its stack, or in its LockStack. There the generational ZGC
// has no colours, and has perhaps not been there since it moved objects.
func (k *Locks) root(ref uint64) (uint64, bool) {
	if ref == 0 || ref%8 != 0 {
		return 0, false
	}
	z := &k.vm.java.heap.z
	switch {
	case !z.on:
		return ref, true
	case z.shift != 0:
		return ref, k.pages.on && k.rests && k.onPage(ref)
	}
	addr, err := k.uncolour(ref)
	return addr, err == nil && addr != 0
}
