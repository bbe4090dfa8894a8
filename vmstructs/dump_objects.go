package vmstructs

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// ErrMoving: there can be no heap dump now, because some references do not lead to their objects.
var ErrMoving = errors.New("vmstructs: a collection is moving objects")

// ErrNotDumped: a heap dump of this JVM would lack objects, or references to objects.
var ErrNotDumped = errors.New("vmstructs: this JVM does not say where all objects of its heap are")

// DumpAreas lists all areas of the heap for a heap dump. It returns ErrMoving if references may not lead to their
// objects.
//
// Most collectors move objects only while all threads are stopped. Shenandoah moves them while the program runs. Its
// collection set lists the old regions until the last reference is corrected (gc/shenandoah/shenandoahHeap.cpp,
// op_final_updaterefs). For ZGC see standStill.
func (h *Heap) DumpAreas() ([]*HeapArea, error) {
	if h.Epoch().Active {
		return nil, ErrMoving
	}
	areas, unknown, err := h.Areas()
	if err == nil && unknown != "" {
		err = ErrNotDumped
	} else if err == nil && h.evacuated {
		err = ErrMoving
	} else if err == nil && h.vm.java.heap.z.on {
		err = h.standStill(areas)
	}
	return areas, err
}

func (h *Heap) Bytes(addr uint64, b []byte) error { return h.vm.mem.Bytes(addr, b) }

// RefSize is the size of a reference in an object, in bytes.
func (h *Heap) RefSize() int {
	if h.vm.java.heap.narrow {
		return 4
	}
	return 8
}

// Ref decodes the reference at the beginning of b.
func (h *Heap) Ref(b []byte) uint64 {
	if m := &h.vm.java.heap; m.narrow {
		n := uint64(binary.LittleEndian.Uint32(b))
		if n == 0 {
			return 0
		}
		return m.base + n<<m.shift
	}
	return word(b)
}

// Head is the number of bytes of an array before its elements.
func (c *ObjectClass) Head() uint64 { return c.size }

// KlassOf returns the class of the object at an address. It returns 0 if no object can begin there, because the address
// is in none of the areas, or there is no header. areas are sorted.
func (h *Heap) KlassOf(areas []*HeapArea, addr uint64) uint64 {
	if addr == 0 || addr&(h.align-1) != 0 {
		return 0
	}
	a := areaOf(areas, addr)
	if a == nil || a.Part == HumongousPart && addr != a.Start || a.free(addr) {
		return 0
	}
	var head [klassBytes]byte
	if h.vm.mem.Bytes(addr, head[:]) != nil || !h.markMakesSense(word(head[:])) {
		return 0
	}
	return h.klasses.klassIn(head[:])
}

// free reports whether an address is in the unused memory of a thread's buffer.
func (a *HeapArea) free(addr uint64) bool {
	i, _ := slices.BinarySearchFunc(a.seams, addr+1, func(s seam, at uint64) int { return cmp.Compare(s.at, at) })
	return i > 0 && addr < a.seams[i-1].next
}

func (h *Heap) ThreadObject(t Thread) (uint64, error) {
	obj, err := h.vm.threadObject(t)
	if err == nil || !h.vm.java.heap.z.on || !h.vm.l.thread.objHandle {
		return h.onPage(obj), err
	}
	if obj, err = h.wideAt(t.obj); err != nil || obj == 0 { // the reference may be stale
		return 0, ErrMoved
	}
	if back, err := h.vm.mem.U64(obj + h.vm.java.eetop); err != nil || back != t.Addr {
		return 0, ErrMoved
	}
	return obj, nil
}

const (
	maxHandleBlocks = 1 << 16 // of a list
	blockHandles    = 32      // of a JNIHandleBlock (block_size_in_oops)
)

// LocalHandles calls f with each handle of the native method that a thread runs, and with the handle's object
// (runtime/jniHandles.hpp), until f returns false. A free handle has object 0. LocalHandles returns false if some
// handles are not known.
//
// It does not find the handles of outer frames. These are handles in frames that native code has pushed, and those of
// native methods that called Java (JNIHandleBlock::_pop_frame_link, JavaCallWrapper::_handles). The JVM exports neither
// field.
func (h *Heap) LocalHandles(t Thread, f func(object, handle uint64) bool) (all bool) {
	d := &h.vm.l.dump
	return d.handles.ok() && h.eachInBlocks(h.health.pointerAt(t.Addr, d.handles), f)
}

// GlobalHandles is LocalHandles for the global handles of native code.
func (h *Heap) GlobalHandles(f func(object, handle uint64) bool) (all bool) {
	d := &h.vm.l.dump
	at := h.health.pointerAt(d.globals, 0)
	if d.globals == 0 || at == 0 {
		return false
	}
	if d.globalBlocks {
		return h.eachInBlocks(at, f)
	}
	return h.eachStored(at, f)
}

// eachInBlocks walks a list of JNIHandleBlocks. A free handle has its lowest bit set, or is null. The first block that
// is not full is the last one in use.
func (h *Heap) eachInBlocks(block uint64, f func(object, handle uint64) bool) (all bool) {
	d := &h.vm.l.dump
	if !d.slots.ok() || !d.top.ok() || !d.next.ok() {
		return false
	}
	var slots [8 * blockHandles]byte
	for n := 0; block != 0 && block%8 == 0 && n < maxHandleBlocks; n++ {
		top, err := h.vm.mem.U32(block + uint64(d.top))
		if err != nil || top > blockHandles || h.vm.mem.Bytes(block+uint64(d.slots), slots[:8*top]) != nil {
			return false
		}
		for i := uint64(0); i < 8*uint64(top); i += 8 {
			object := word(slots[i:])
			if object&7 != 0 {
				object = 0
			}
			if !f(object, block+uint64(d.slots)+i) {
				return false
			}
		}
		if top < blockHandles {
			return true
		}
		block = h.health.pointerAt(block, d.next)
	}
	return block == 0
}

// An OopStorage has a name, followed by the pointer to its array of blocks. The array begins with its size, the number
// of its blocks and a count of its users. A block has 64 references, and then a word with a bit for each used reference
// (gc/shared/oopStorage.hpp, oopStorage.inline.hpp; since 10).
const (
	storageArray  = 8
	arrayOfBlocks = 24
	blockRefs     = 64
	maxBlocks     = 1 << 20
)

func (h *Heap) eachStored(storage uint64, f func(object, handle uint64) bool) (all bool) {
	array := h.health.pointerAt(storage, storageArray)
	blocks := h.health.pointerAt(array, 8)
	if array == 0 || blocks > h.health.pointerAt(array, 0) || blocks > maxBlocks {
		return false
	}
	all = true
	var b [8*blockRefs + 8]byte
	for i := range blocks {
		block := h.health.pointerAt(array, offset(arrayOfBlocks+8*i))
		if block == 0 || block%8 != 0 || h.vm.mem.Bytes(block, b[:]) != nil {
			all = false
			continue
		}
		used := word(b[8*blockRefs:])
		for k := range uint64(blockRefs) {
			if object := word(b[8*k:]); used>>k&1 == 1 && object&7 == 0 && !f(object, block+8*k) {
				return false
			}
		}
	}
	return all
}
