package vmstructs

import (
	"cmp"

	"goprof/process/maybe"
)

// DirectMemory has the counts of direct buffers in java.nio.Bits. Buffers that native code or Unsafe has made are not
// included.
type DirectMemory struct {
	Reserved uint64 // bytes that count towards Max
	Capacity uint64 // bytes of all buffers; Reserved also has the alignment to pages
	Count    uint64 // number of buffers
	Max      maybe.Value[uint64]
}

const (
	classBits       = "java/nio/Bits"
	classAtomicLong = "java/util/concurrent/atomic/AtomicLong"
)

// directFields are the static fields of Bits, with their names since 9 and up to 8.
var directFields = [...][2]string{{"RESERVED_MEMORY", "reservedMemory"}, {"TOTAL_CAPACITY", "totalCapacity"},
	{"COUNT", "count"}, {"MAX_MEMORY", "maxMemory"}}

// DirectMemory reads the counts. ok is false if they are not known. All are 0 if the program has never used direct
// memory.
func (h *Health) DirectMemory() (d DirectMemory, ok bool) {
	if h.prepareClasses() != nil {
		return d, false
	}
	c := &h.classes
	if c.bits == nil {
		klass, ok := h.bitsKlass()
		if !ok || klass == 0 {
			return d, ok
		}
		if c.bits, _ = h.staticClass(klass); c.bits == nil {
			return d, false
		}
	}
	for range referenceTries {
		if d, ok = h.directOnce(); ok {
			break
		}
	}
	return d, ok
}

// directOnce reads the counters twice. Both readings must be the same, because the counters are objects, which
// collectors move.
func (h *Health) directOnce() (d DirectMemory, ok bool) {
	var first [3]uint64
	for round := range 2 {
		var now [3]uint64
		mirror, err := h.vm.mirror(h.classes.bits.klass)
		if err != nil {
			return d, false
		}
		for i := range now {
			if now[i], ok = h.atomicLong(directFields[i]); !ok {
				return d, false
			}
		}
		limit, known := h.bitsField(directFields[3])
		most, err := h.vm.mem.U64(mirror + limit)
		d.Max = maybe.If(most, known && err == nil && most > 0 && most < maxHeapBytes)
		if round > 0 && first != now {
			return d, false
		}
		first = now
	}
	d.Reserved, d.Capacity, d.Count = first[0], first[1], first[2]
	return d, max(d.Reserved, d.Capacity) < maxHeapBytes && d.Count < maxHeapBytes
}

// bitsField returns the offset of a static field in the mirror of Bits.
func (h *Health) bitsField(names [2]string) (uint64, bool) {
	fields := h.classes.bits.fields
	at := cmp.Or(fields[names[0]], fields[names[1]])
	return at, at != 0
}

// atomicLong reads the number in an AtomicLong to which a static field of Bits refers.
func (h *Health) atomicLong(names [2]string) (n uint64, ok bool) {
	c := &h.classes
	name := names[0]
	if _, ok := c.bits.fields[name]; !ok {
		name = names[1]
	}
	obj, err := h.static(c.bits, name)
	if err != nil || obj == 0 || obj%8 != 0 {
		return 0, false
	}
	var head [klassBytes]byte
	if h.vm.mem.Bytes(obj, head[:]) != nil {
		return 0, false
	}
	klass := c.klasses.klassIn(head[:])
	if c.long == nil || c.long.klass != klass {
		long, err := h.staticClass(klass)
		if name, err2 := h.vm.klassName(klass); err != nil || err2 != nil || name != classAtomicLong {
			return 0, false
		}
		c.long = long
	}
	n, err = h.vm.mem.U64(obj + c.long.fields["value"])
	return n, err == nil && c.long.fields["value"] != 0
}

// bitsKlass finds the class among the direct subclasses of Object (oops/klass.hpp). It returns 0 if the class is not
// loaded. Only the boot loader may define a class of package java.nio.
func (h *Health) bitsKlass() (klass uint64, ok bool) {
	tree := &h.vm.l.hierarchy
	object := h.pointerAt(h.pointerAt(h.vm.l.oops.threadKlass, 0), h.vm.l.health.super)
	klass = h.pointerAt(object, tree.first)
	ok = klass != 0
	for n := 0; klass != 0 && n < maxBootKlasses; n++ {
		name, err := h.vm.klassName(klass)
		if err == nil && name == classBits {
			return klass, true
		}
		ok = ok && err == nil
		klass = h.pointerAt(klass, tree.next)
	}
	return 0, ok && klass == 0
}
