package vmstructs

import (
	"cmp"
	"errors"
	"slices"
)

// ErrMoving: a heap dump cannot be made now, because references do not lead to where objects are.
var ErrMoving = errors.New("vmstructs: a collection is moving objects")

// ErrNotDumped: a heap dump of a JVM with this collector would lack objects.
var ErrNotDumped = errors.New("vmstructs: goprof cannot read all objects and references of this collector")

// DumpAreas lists all areas of the heap for a heap dump. It refuses a collector if references may not lead to their
// objects.
//
// Serial, Parallel and G1 move objects only while all threads stand still. Shenandoah moves them while the program
// runs. Until the last reference to the old places is corrected, the regions with these are its collection set
// (gc/shenandoah/shenandoahHeap.cpp, op_final_updaterefs). ZGC leaves references to the old places behind. CMS keeps
// free memory among the objects of its old generation.
func (h *Heap) DumpAreas() ([]*HeapArea, error) {
	switch h.vm.Collector() {
	case "Serial", "Parallel", "G1", "Epsilon", "Shenandoah":
	default:
		return nil, ErrNotDumped
	}
	if h.Epoch().Active {
		return nil, ErrMoving
	}
	areas, unknown, err := h.Areas()
	if err == nil && unknown != "" {
		err = ErrNotDumped
	} else if err == nil && h.evacuated {
		err = ErrMoving
	}
	return areas, err
}

// Bytes reads memory of the heap.
func (h *Heap) Bytes(addr uint64, b []byte) error { return h.vm.mem.Bytes(addr, b) }

// RefSize is how many bytes a reference has in an object.
func (h *Heap) RefSize() int {
	if h.vm.java.heap.narrow {
		return 4
	}
	return 8
}

// Ref takes a reference out of an object's bytes, which begin with it.
func (h *Heap) Ref(b []byte) uint64 {
	if m := &h.vm.java.heap; m.narrow {
		n := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
		if n == 0 {
			return 0
		}
		return m.base + n<<m.shift
	}
	return word(b)
}

// Head is how many bytes of an array come before its elements.
func (c *ObjectClass) Head() uint64 { return c.size }

// KlassOf returns the class that an address names if an object begins there: it lies in an area, and what is there may
// be a header. 0 otherwise. areas are sorted.
func (h *Heap) KlassOf(areas []*HeapArea, addr uint64) uint64 {
	if addr == 0 || addr&(h.align-1) != 0 {
		return 0
	}
	i, found := slices.BinarySearchFunc(areas, addr, func(a *HeapArea, at uint64) int { return cmp.Compare(a.Start, at) })
	if !found {
		i--
	}
	if i < 0 || addr >= areas[i].Top || areas[i].Part == HumongousPart && !found || areas[i].free(addr) {
		return 0
	}
	var head [klassBytes]byte
	if h.vm.mem.Bytes(addr, head[:]) != nil || !h.markMakesSense(word(head[:])) {
		return 0
	}
	return h.klasses.klassIn(head[:])
}

// free reports whether a thread has an address for objects to come.
func (a *HeapArea) free(addr uint64) bool {
	i, _ := slices.BinarySearchFunc(a.seams, addr+1, func(s seam, at uint64) int { return cmp.Compare(s.at, at) })
	return i > 0 && addr < a.seams[i-1].next
}

// ThreadObject returns the java.lang.Thread of a thread.
func (h *Heap) ThreadObject(t Thread) (uint64, error) {
	obj, err := h.vm.threadObject(t)
	if err == nil || !h.vm.java.heap.z.on || !h.vm.l.thread.objHandle {
		return obj, err
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
	// maxHandleBlocks bounds a list of blocks.
	maxHandleBlocks = 1 << 16
	// blockHandles is how many handles a JNIHandleBlock has (block_size_in_oops).
	blockHandles = 32
)

// LocalHandles calls f with each handle of the native method that a thread is in, and the object that it stands for
// (runtime/jniHandles.hpp), until f returns false. A free handle has the object 0. LocalHandles returns false if some
// handles are not known.
//
// It does not find the handles of outer frames. If a native method pushed a frame of handles, or called Java, it has
// more handles (JNIHandleBlock::_pop_frame_link, JavaCallWrapper::_handles), and the JVM exports neither field.
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

// eachInBlocks goes through a list of JNIHandleBlocks. A free handle has its lowest bit set, or is null. Behind a block
// that is not full come none that are in use.
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

// An OopStorage has a name, and behind it the pointer to its array of blocks. Before the blocks, the array has its
// size, the number of its blocks and a count of its users. A block has 64 references, and then a word with a bit for
// each that is in use (gc/shared/oopStorage.hpp, oopStorage.inline.hpp; since 10).
const (
	storageArray  = 8
	arrayOfBlocks = 24
	blockRefs     = 64
	maxBlocks     = 1 << 20
)

// eachStored goes through an OopStorage.
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
