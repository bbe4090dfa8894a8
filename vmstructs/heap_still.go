package vmstructs

import (
	"cmp"
	"math/bits"
	"slices"
)

// stillZ caches ZGC's tables while the JVM is stopped, because most references of an idle JVM are stale. The zero value
// caches nothing.
type stillZ struct {
	areas       []*HeapArea
	forwardings map[uint64]*zForwarding // by the addresses of their entries
	room        uint64                  // for more entries
}

// maxKeptEntries bounds the cached entries, to 64 MB.
const maxKeptEntries = 1 << 23

// standStill prepares a Heap for ZGC's references while the JVM is stopped. It returns ErrMoving if the collector is
// moving objects. This is so while a page has users, until its last object has moved (gc/z/zForwarding.cpp,
// release_page).
func (h *Heap) standStill(areas []*HeapArea) error {
	k := h.zHeap()
	if !k.pages.on || !k.pages.l.users.ok() || k.pages.moved[0].at == 0 ||
		k.pages.moved[1].at == 0 && h.vm.java.heap.z.shift != 0 { // there are generations
		return ErrNotDumped
	}
	for _, table := range k.pages.moved {
		forwardings, err := h.pageList(table.at, table.entries)
		if err != nil {
			return err
		}
		for _, at := range forwardings {
			users, err := h.vm.mem.U32(at + uint64(k.pages.l.users))
			if err != nil {
				return err
			}
			if users != 0 {
				return ErrMoving
			}
		}
	}
	var err error
	k.colours, err = h.vm.coloursNow()
	k.still = stillZ{areas: areas, forwardings: map[uint64]*zForwarding{}, room: maxKeptEntries}
	return err
}

// keep caches the ZForwarding of the entry at an address.
func (s *stillZ) keep(k *Locks, at uint64, f *zForwarding) {
	if s.areas == nil {
		return
	}
	if len(s.forwardings) >= maxAreas {
		clear(s.forwardings)
		s.room = maxKeptEntries
	}
	if f != nil && f != &unreadForwarding && f.length <= s.room {
		if b := make([]byte, 8*f.length); k.vm.mem.Bytes(f.at+k.pages.l.size, b) == nil {
			f.entries, s.room = b, s.room-f.length
		}
	}
	s.forwardings[at] = f
}

// areaOf returns the area that holds an address, nil if there is none. areas are sorted.
func areaOf(areas []*HeapArea, addr uint64) *HeapArea {
	i, found := slices.BinarySearchFunc(areas, addr, func(a *HeapArea, at uint64) int { return cmp.Compare(a.Start, at) })
	if !found {
		i--
	}
	if i < 0 || addr >= areas[i].Top {
		return nil
	}
	return areas[i]
}

// OnStack returns the addresses of the objects that a word of a stack may refer to, 0 for none. now is the object at
// the word's address, moved is the object that was moved from there. ZGC has no colours on stacks.
func (h *Heap) OnStack(word uint64) (now, moved uint64) {
	if h.zBase == 0 {
		return word, 0
	}
	if base := word &^ (h.zBase - 1); bits.OnesCount64(base) != 1 || base < h.zBase || base > h.zBase<<2 {
		return 0, 0
	}
	now = h.onPage(word)
	moved, _ = h.zHeap().now(now, anyMove)
	return now, moved
}
