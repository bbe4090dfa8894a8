package vmstructs

import "math/bits"

// ZGC colours references. A reference with a bad colour was not loaded since the collector last moved objects, so it
// may be stale. The JVM updates a reference when a thread loads it. Waiting threads load nothing, so their references
// are mostly stale. While no collection is under way, goprof can follow such a reference as the JVM would: as long as
// references may be stale, the collector keeps a table of the new addresses of moved objects (gc/z/zForwarding.hpp). If
// the object was not moved, its page must still be in the JVM's table of pages (gc/z/zPageTable.hpp).

// zPagesLayout has the fields for these tables: gc/z/zHeap.hpp, zPageTable.hpp, zPage.hpp, zForwardingTable.hpp. % is
// Z. The ZGC without generations of 21 to 23 has X in these names.
type zPagesLayout struct {
	heap    offset `vm:"%CollectedHeap._heap"`
	table   offset `vm:"%Heap._page_table"`
	at      offset `vm:"%PageTable._map"` // its map of pages
	pages   offset `vm:"%GranuleMapForPageTable._map"`
	start   offset `vm:"%Page._virtual"`
	top     offset `vm:"%Page._top"`
	offsets offset `vm:"%GlobalsForVMStructs._%AddressOffsetMask"`   // a pointer to the mask of bits without the colour
	good    offset `vm:"%GlobalsForVMStructs._ZPointerLoadGoodMask"` // a pointer to the good colour

	forwarding  offset `vm:"%Heap._forwarding_table"`       // if there are no generations
	forwardings offset `vm:"%GranuleMapForForwarding._map"` // the ZForwardings of the pages
	shift       offset `vm:"%Forwarding._object_alignment_shift"`
	length      offset `vm:"%Forwarding._entries"`   // number of entries
	users       offset `vm:"%Forwarding._ref_count"` // 0 when all objects of the page have moved
	size        uint64 `vm:"%Forwarding"`            // its entries follow it
}

func (l *zPagesLayout) ok() bool {
	return l.heap.ok() && l.table.ok() && l.at.ok() && l.pages.ok() && l.start.ok() && l.top.ok() && l.offsets.ok()
}

// granule: 1<<granule bytes of the heap have one entry in the tables (gc/z/zGlobals.hpp, ZGranuleSizeShift).
const granule = 21

// zPages has the places of the tables of the heap's pages.
type zPages struct {
	on    bool
	mask  uint64 // the bits of an address that are its offset in the heap
	table uint64
	start offset
	top   offset
	moved [2]zTable // the tables of moved objects: of the young and the old generation, or of all objects
	l     *zPagesLayout
	// shifts: a reference's colour determines by how many bits it is shifted (gc/z/zAddress.hpp on x86-64). Otherwise it
	// is shifted by 16.
	shifts bool
}

// zTable is a ZGranuleMap. The number of its entries is not exported. It is stored before the pointer to them
// (gc/z/zGranuleMap.hpp).
type zTable struct{ at, entries uint64 }

func (k *Locks) tableAt(pointer uint64) (t zTable) {
	if pointer == 0 {
		return t
	}
	at, err1 := k.vm.mem.Ptr(pointer)
	entries, err2 := k.vm.mem.U64(pointer - 8)
	if err1 != nil || err2 != nil {
		return t
	}
	return zTable{at, min(entries, maxGranules)}
}

// findPages finds the tables, if the collector is ZGC and the JVM exports the necessary fields.
func (k *Locks) findPages() (p zPages) {
	z := &k.vm.java.heap.z
	if !z.on {
		return p
	}
	l, globals := k.vm.zTables()
	if !l.ok() || globals == 0 || k.vm.l.locks.heap == 0 {
		return p
	}
	at := func(addr uint64) uint64 { return k.vm.pointer(addr, 0) }
	holder := at(globals)
	p.mask = at(at(holder + uint64(l.offsets)))
	heap := at(k.vm.l.locks.heap) + uint64(l.heap)
	p.table = at(heap + uint64(l.table) + uint64(l.at) + uint64(l.pages))
	p.start, p.top, p.l = l.start, l.top, l
	switch {
	case l.forwardings != 8 || !l.shift.ok() || !l.length.ok() || l.size == 0:
	case l.forwarding.ok():
		p.moved[0] = k.tableAt(heap + uint64(l.forwarding) + uint64(l.forwardings))
	default:
		p.moved[0] = k.tableAt(k.generation("_ZN11ZGeneration6_youngE", heap+uint64(l.table)))
		p.moved[1] = k.tableAt(k.generation("_ZN11ZGeneration4_oldE", heap+uint64(l.table)))
	}
	if z.shift != 0 && l.good.ok() {
		good, shift := at(at(holder+uint64(l.good))), at(z.shift)
		p.shifts = good>>12&15 != 0 && shift == 13+uint64(bits.TrailingZeros64(good>>12&15))
	}
	p.on = p.mask != 0 && p.table != 0
	return p
}

// generation returns the address of the pointer to a generation's table of moved objects. The JVM does not export that
// member. It follows a member with a known value, the pointer to the table of pages (gc/z/zGeneration.hpp).
func (k *Locks) generation(symbol string, pages uint64) uint64 {
	var b [96]byte
	at := k.vm.pointer(k.vm.global(symbol), 0)
	if at == 0 || k.vm.mem.Bytes(at, b[:]) != nil {
		return 0
	}
	for i := 0; i < len(b); i += 8 {
		if word(b[i:]) == pages {
			return at + uint64(i) + 16
		}
	}
	return 0
}

// CollectorRests sets whether all of ZGC's threads are idle, and will be idle while the next round is read.
func (k *Locks) CollectorRests(rests bool) {
	k.rests = rests
	if s := k.unmounted.search; s != nil {
		s.c.CollectorRests(rests)
	}
}

// IsZGC reports whether CollectorRests makes a difference.
func (k *Locks) IsZGC() bool { return k.pages.on }

// uncolour converts a reference in the heap or in a handle to an address, even if it is stale, as long as the collector
// is idle.
func (k *Locks) uncolour(v uint64) (uint64, error) {
	addr, err := k.vm.uncolour(v)
	if err != nil && k.rests {
		addr, err = k.stale(v)
	}
	k.lost = k.lost || err != nil
	return addr, err
}

// stale follows a reference with a bad colour.
func (k *Locks) stale(v uint64) (uint64, error) {
	if !k.rests || !k.pages.on {
		return 0, ErrMoved
	}
	addr, moved := v, anyMove
	if k.vm.java.heap.z.shift != 0 {
		now, err := k.vm.coloursNow()
		colour, good, ok := zColourOf(v, now.badMask)
		if err != nil || !ok {
			return 0, ErrMoved
		}
		shift := 16
		if k.pages.shifts {
			shift = 13 + colour
		}
		addr, moved = v>>shift, colour^good
		if moved == anyMove && v&zRemembered == zRemembered {
			moved = oldMove
		}
	}
	if addr, ok := k.now(addr, moved); ok {
		return addr, nil
	}
	return 0, ErrMoved
}

// zColourOf returns the number of the bit that is a reference's colour, and of the bit that is good now. On aarch64 the
// four bits are inverted (gc/z/zAddress_aarch64.inline.hpp, ZPointer::remap_bits): one bit is bad, not three.
func zColourOf(v, badMask uint64) (colour, good int, ok bool) {
	is, bad := v>>12&15, badMask>>12&15
	if bits.OnesCount64(bad) == 1 {
		is, bad = ^is&15, ^bad&15
	}
	ok = bits.OnesCount64(is) == 1 && bits.OnesCount64(bad) == 3
	return bits.TrailingZeros64(is), bits.TrailingZeros64(^bad), ok
}

// A colour is one of four bits. The bit's number changes by 1 with each young collection that moves objects, and by 2
// with each old one (gc/z/zAddress.cpp, ZGlobalsPointers::flip_young_relocate_start, flip_old_relocate_start). So the
// colour shows which generation's table has the object's new address. Bit i of moved stands for zPages.moved[i].
const (
	oldMove, anyMove = 2, 3
	// zRemembered are the bits that a store of a reference to an old object into an old object sets (gc/z/zAddress.hpp,
	// ZPointerRememberedMask; zBarrier.inline.hpp, ZBarrier::remap_generation).
	zRemembered = 0x30
)

// now returns the present address of the object that was at addr before the last collection. ok is false if it is not
// known.
func (k *Locks) now(addr uint64, moved int) (uint64, bool) {
	if addr == 0 || addr%8 != 0 {
		return 0, false
	}
	for i, table := range k.pages.moved {
		if table.at == 0 || moved>>i&1 == 0 {
			continue
		}
		to, moved, known := k.movedTo(table, addr&k.pages.mask)
		if !known {
			return 0, false
		} else if moved {
			addr = addr&^k.pages.mask | to
			break
		}
	}
	return addr, k.onPage(addr)
}

// A ZForwardingEntry (gc/z/zForwardingEntry.hpp) has a bit that is set if the entry is used, the object's new offset,
// and the object's index.
const (
	movedToBits   = 45
	movedFromBits = 18
	maxMoved      = 1 << 20 // entries of a page
	maxProbes     = 1 << 10
)

// movedTo looks up the new offset of the object at an offset, as ZForwarding::find does (gc/z/zForwarding.inline.hpp).
// known is false if the entries cannot be read.
func (k *Locks) movedTo(table zTable, at uint64) (to uint64, moved, known bool) {
	if at>>granule >= table.entries {
		return 0, false, true
	}
	f := k.forwardingOf(table.at + 8*(at>>granule))
	if f == nil || f == &unreadForwarding || at < f.start {
		return 0, false, f != &unreadForwarding
	}
	from := (at - f.start) >> f.shift
	for i, n := uint64(zHash(uint32(from))), 0; n < maxProbes; i, n = i+1, n+1 {
		e, err := k.entry(f, i&(f.length-1))
		if err != nil || e&1 == 0 {
			return 0, false, err == nil
		}
		if e>>(1+movedToBits)&(1<<movedFromBits-1) == from {
			return e >> 1 & (1<<movedToBits - 1), true, true
		}
	}
	return 0, false, false
}

// zForwarding is a ZForwarding: its page's former address, the shift of the objects' alignment, and its number of
// entries.
type zForwarding struct {
	at, start, shift, length uint64
	entries                  []byte // cached entries
}

// unreadForwarding stands for a ZForwarding that cannot be read.
var unreadForwarding zForwarding

func (k *Locks) forwarding(at uint64) *zForwarding {
	l := k.pages.l
	start, err1 := k.vm.mem.U64(at) // ZForwarding::_virtual is its first member
	shift, err2 := k.vm.mem.U64(at + uint64(l.shift))
	n, err3 := k.vm.mem.U64(at + uint64(l.length))
	if err1 != nil || err2 != nil || err3 != nil || shift > 32 || n == 0 || n > maxMoved || n&(n-1) != 0 {
		return &unreadForwarding
	}
	return &zForwarding{at: at, start: start, shift: shift, length: n}
}

// forwardingOf returns the ZForwarding to which the entry at an address points, nil if there is none.
func (k *Locks) forwardingOf(at uint64) (f *zForwarding) {
	if f, known := k.still.forwardings[at]; known {
		return f
	}
	if p, err := k.vm.mem.Ptr(at); err != nil {
		f = &unreadForwarding
	} else if p != 0 {
		f = k.forwarding(p)
	}
	k.still.keep(k, at, f)
	return f
}

func (k *Locks) entry(f *zForwarding, i uint64) (uint64, error) {
	if f.entries != nil {
		return word(f.entries[8*i:]), nil
	}
	return k.vm.mem.U64(f.at + k.pages.l.size + 8*i)
}

// zHash is ZHash::uint32_to_uint32 (gc/z/zHash.inline.hpp).
func zHash(key uint32) uint32 {
	key = ^key + key<<15
	key ^= key >> 12
	key += key << 2
	key ^= key >> 4
	key *= 2057
	return key ^ key>>16
}

// onPage reports whether an address lies in the used part of a page.
func (k *Locks) onPage(addr uint64) bool {
	if k.still.areas != nil {
		return areaOf(k.still.areas, addr&k.pages.mask|(k.pages.mask+1)) != nil
	}
	at := addr & k.pages.mask
	page, err := k.vm.mem.Ptr(k.pages.table + 8*(at>>granule))
	if err != nil || page == 0 {
		return false
	}
	start, err1 := k.vm.mem.U64(page + uint64(k.pages.start))
	top, err2 := k.vm.mem.U64(page + uint64(k.pages.top))
	return err1 == nil && err2 == nil && at >= start && at < top
}

// oopIn returns a reference in an object's bytes.
func (k *Locks) oopIn(b []byte, at uint64) (uint64, error) {
	if !k.pages.on {
		return k.vm.oopIn(b, at)
	}
	return k.uncolour(word(b[at:])) // ZGC has no narrow references
}

// root converts a reference on a thread's stack, or in its LockStack, to an address. ZGC with generations has no
// colours there, and may not have updated the reference since it moved objects.
func (k *Locks) root(ref uint64) (uint64, bool) {
	if ref == 0 || ref%8 != 0 {
		return 0, false
	}
	z := &k.vm.java.heap.z
	switch {
	case !z.on:
		return ref, true
	case z.shift != 0:
		if !k.pages.on || !k.rests {
			return 0, false
		}
		// If an object was moved away from ref, and another object is there now, it is not known which of them is meant.
		now, ok := k.now(ref, anyMove)
		return now, ok && (now == ref || !k.onPage(ref))
	}
	addr, err := k.uncolour(ref)
	return addr, err == nil && addr != 0
}
