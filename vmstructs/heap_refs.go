package vmstructs

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"goprof/process"
)

// Sought is a set of objects whose references goprof looks for. An object is identified by its index in the list of
// addresses.
type Sought struct {
	h      *Heap
	addrs  []uint64
	filter []uint64 // a bit for each hash of an address; it excludes most words of a heap
	number map[uint64]int32
	Partly bool // some of ZGC's tables of moved objects could not be read: stale references may be missing
}

// filterBits is the logarithm of the filter's size in bits. The filter fits into a CPU's cache.
const filterBits = 21

func (h *Heap) NewSought(addrs []uint64) *Sought {
	w := &Sought{h: h, addrs: addrs, filter: make([]uint64, 1<<filterBits/64),
		number: make(map[uint64]int32, len(addrs))}
	for i, addr := range addrs {
		w.add(addr, int32(i))
	}
	if h.vm.java.heap.z.on {
		w.addMoved()
	}
	return w
}

func (w *Sought) add(addr uint64, i int32) {
	hash := hashOf(addr)
	w.filter[hash/64] |= 1 << (hash % 64)
	w.number[addr] = i
}

// maxForwarded bounds the entries of ZGC's tables of moved objects that are read.
const maxForwarded = 1 << 25

// addMoved adds the former addresses of objects that ZGC has moved, because stale references have these.
func (w *Sought) addMoved() {
	k, left := w.h.zHeap(), uint64(maxForwarded)
	for _, table := range k.pages.moved {
		forwardings, err := w.h.pageList(table.at, table.entries)
		w.Partly = w.Partly || err != nil
		for _, at := range forwardings {
			f := k.forwarding(at)
			b := make([]byte, 8*min(f.length, left))
			if f == &unreadForwarding || f.length > left || w.h.vm.mem.Bytes(at+k.pages.l.size, b) != nil {
				w.Partly = true
				continue
			}
			left -= f.length
			for ; len(b) > 0; b = b[8:] {
				e := word(b)
				to, from := w.h.onPage(e>>1&(1<<movedToBits-1)), w.h.onPage(f.start+e>>(1+movedToBits)<<f.shift)
				i, moved := w.number[to]
				if _, taken := w.number[from]; moved && !taken && e&1 == 1 && w.addrs[i] == to {
					w.add(from, i)
				}
			}
		}
	}
}

func hashOf(addr uint64) uint64 { return (addr >> 3) * 0x9e3779b97f4a7c15 >> (64 - filterBits) }

func (w *Sought) get(addr uint64) (int32, bool) {
	if hash := hashOf(addr); w.filter[hash/64]>>(hash%64)&1 == 0 {
		return 0, false
	}
	i, ok := w.number[addr]
	return i, ok
}

// InHeap calls found for each reference to an object of the set in b, a copy of aligned memory of the heap.
func (w *Sought) InHeap(b []byte, found func(at int, object int32)) {
	m := &w.h.vm.java.heap
	if m.narrow {
		w.inHalves(b, found)
		return
	}
	if m.z.on {
		var held zColours
		if w.h.vm.holdColours(&held) != nil {
			return
		}
		defer w.h.vm.letGoColours()
	}
	for at := 0; at+8 <= len(b); at += 8 {
		addr := word(b[at:])
		if m.z.on {
			addr = w.h.bare(addr)
		}
		if _, ok := w.get(addr); !ok || addr == 0 {
			continue
		}
		// A stale reference may have the present address of another object.
		to := w.h.RefTo(b[at:])
		if i, ok := w.get(to); ok && w.addrs[i] == to {
			found(at, i)
		}
	}
}

// inHalves looks for compressed references.
func (w *Sought) inHalves(b []byte, found func(at int, object int32)) {
	m := &w.h.vm.java.heap
	for at := 0; at+4 <= len(b); at += 4 {
		n := uint64(binary.LittleEndian.Uint32(b[at:]))
		if n == 0 {
			continue
		}
		if i, ok := w.get(m.base + n<<m.shift); ok {
			found(at, i)
		}
	}
}

// OnStack calls found for each word of a stack that may be a reference to an object of the set, whole or compressed.
// The word may also be out of date, or a number.
func (w *Sought) OnStack(b []byte, found func(object int32)) {
	for at := 0; at+8 <= len(b); at += 8 {
		if i, ok := w.get(w.h.onPage(word(b[at:]))); ok {
			found(i)
		}
	}
	if w.h.vm.java.heap.narrow {
		w.inHalves(b, func(_ int, object int32) { found(object) })
	}
}

// zHeap returns a Locks that follows ZGC's stale references as if the collector were idle. So the callers of RefTo must
// check what they have found.
func (h *Heap) zHeap() *Locks {
	if h.z == nil {
		h.z = &Locks{vm: h.vm, rests: true}
		h.z.pages = h.z.findPages()
	}
	return h.z
}

// RefTo returns the address to which the reference at the beginning of b leads, even if the reference is stale with
// ZGC. It returns 0 if the reference is null, or leads nowhere now.
func (h *Heap) RefTo(b []byte) uint64 {
	if !h.vm.java.heap.z.on {
		return h.Ref(b)
	}
	return h.Wide(word(b))
}

// Wide returns the address to which a reference of eight bytes leads, 0 if it leads nowhere now.
func (h *Heap) Wide(v uint64) uint64 {
	if !h.vm.java.heap.z.on {
		return v
	}
	k := h.zHeap()
	if k.still.areas != nil {
		h.vm.java.heap.z.held = &k.colours
	}
	addr, err := k.uncolour(v)
	if k.still.areas != nil {
		h.vm.java.heap.z.held = nil
	}
	if err != nil || addr == 0 {
		return 0
	}
	return h.onPage(addr)
}

// wideAt reads the reference of eight bytes at an address.
func (h *Heap) wideAt(addr uint64) (uint64, error) {
	v, err := h.vm.mem.U64(addr)
	return h.Wide(v), err
}

// bare returns the address in a coloured reference, stale or not.
func (h *Heap) bare(v uint64) uint64 {
	if h.vm.java.heap.z.shift == 0 {
		return h.onPage(v)
	}
	shift := 16
	if h.zHeap().pages.shifts {
		colour := v >> 12 & 15
		if colour == 0 {
			return 0
		}
		shift = 13 + bits.TrailingZeros64(colour)
	}
	return h.onPage(v >> shift)
}

func (h *Heap) ReadMany(rs []process.Range) { h.vm.t.ReadMany(rs) }

// ObjectIn returns the object at addr, which begins with b. Object.Bytes is 0 if b is too short. ok is false if b is
// not an object.
func (h *Heap) ObjectIn(addr uint64, b []byte) (o Object, ok bool) {
	if len(b) < klassBytes || !h.markMakesSense(word(b)) {
		return o, false
	}
	class, size, err := h.object(b)
	if err != nil || class == &freeMemory {
		return o, false
	}
	o = Object{Addr: addr, Class: class, Bytes: size, Length: -1}
	if class.kind == arrayObject {
		o.Length = int64(h.lengthIn(b))
	}
	return o, true
}

func (h *Heap) Threads() ([]Thread, error) { return h.vm.Threads() }

// ThreadName returns the name of a thread, empty if it cannot be read now.
func (h *Heap) ThreadName(t Thread) string {
	name, err := h.vm.ThreadName(t)
	if err == nil || name != "" || !h.vm.java.heap.z.on {
		return name
	}
	obj, err1 := h.ThreadObject(t) // references to it may be stale
	text, err2 := h.wideAt(obj + h.vm.java.name)
	chars, err3 := h.wideAt(text + h.vm.java.value)
	if errors.Join(err1, err2, err3) == nil && chars != 0 {
		name, _ = h.vm.charsOf(text, chars)
	}
	return name
}

// StackOf reads the frames on a thread's stack, up to most bytes from the oldest frame on. A thread that runs Java has
// no anchor. Then the result may include words of former frames.
func (h *Heap) StackOf(t Thread, most uint64) []byte {
	size := min(t.StackSize, most)
	var side [24]byte
	if h.vm.l.thread.anchor.ok() && h.vm.mem.Bytes(t.Addr+uint64(h.vm.l.thread.anchor), side[:]) == nil {
		if a, ok := h.vm.DecodeAnchor(side[:]); ok && a.SP < t.StackBase {
			size = min(size, t.StackBase-a.SP)
		}
	}
	b := make([]byte, size&^7)
	for step := uint64(firstWindow); ; step *= 2 { // memory near the guard pages may not be mapped
		if h.vm.mem.Bytes(t.StackBase-uint64(len(b)), b) == nil {
			return b
		}
		if step >= uint64(len(b)) {
			return nil
		}
		b = b[:uint64(len(b))-step]
	}
}

// KlassIn returns the class in an object's header, 0 if there is none.
func (h *Heap) KlassIn(head []byte) uint64 {
	if !h.markMakesSense(word(head)) {
		return 0
	}
	return h.klasses.klassIn(head)
}
