package vmstructs

import (
	"encoding/binary"
	"slices"
	"testing"
)

// dumpHeap is a Heap of a tiny JVM.
func dumpHeap(t testing.TB) (*objectWorld, *Heap, *HeapArea) {
	w := mixedWorld(t, headers[0], 30)
	h, a := walkedHeap(w)
	h.health = &Health{vm: w.vm}
	return w, h, a
}

// TestKlassOf: KlassOf accepts an address only if an object may begin there, and not in the unused part of a buffer.
func TestKlassOf(t *testing.T) {
	_, h, a := dumpHeap(t)
	var objects []uint64
	h.Walk(a, a.Start, a.Top, never, func(o *Object) { objects = append(objects, o.Addr) })
	areas := []*HeapArea{a}
	for _, addr := range objects {
		if klass := h.KlassOf(areas, addr); h.classes[klass] == nil {
			t.Errorf("+%d: %#x", addr-a.Start, klass)
		}
	}
	for _, addr := range []uint64{0, a.Start - 8, a.Top, objects[1] + 1, objects[1] + 4} {
		if klass := h.KlassOf(areas, addr); klass != 0 {
			t.Errorf("%#x: %#x", addr, klass)
		}
	}
	addBuffer(areas, objects[2], objects[3], objects[6])
	for i, free := range []bool{3: true, 4: true, 5: true, 6: false} {
		if klass := h.KlassOf(areas, objects[i]); (klass == 0) != free {
			t.Errorf("object %d: %#x", i, klass)
		}
	}
}

// TestStoredHandles reads an OopStorage with two blocks, and one with a false count.
func TestStoredHandles(t *testing.T) {
	w, h, _ := dumpHeap(t)
	storage, array := w.alloc(64), w.alloc(64)
	w.put64(storage+storageArray, array)
	w.put64(array, 4)
	w.put64(array+8, 2)
	blocks := []uint64{w.alloc(1024), w.alloc(1024)}
	for i, block := range blocks {
		w.put64(array+arrayOfBlocks+8*uint64(i), block)
		for k := range uint64(blockRefs) {
			w.put64(block+8*k, 0x1000*uint64(i+1)+8*k)
		}
		w.put64(block+8*blockRefs, 1<<63|1<<5)
	}
	var found []uint64
	all := h.eachStored(storage, func(object, handle uint64) bool {
		found = append(found, object)
		return true
	})
	if want := []uint64{0x1028, 0x11f8, 0x2028, 0x21f8}; !all || !slices.Equal(found, want) {
		t.Errorf("%v %#x", all, found)
	}
	calls := 0
	if h.eachStored(storage, func(_, _ uint64) bool { calls++; return false }) || calls != 1 {
		t.Errorf("%d calls after the caller wanted no more", calls)
	}
	w.put64(array+8, 5)
	if h.eachStored(storage, func(_, _ uint64) bool { t.Error("called"); return true }) {
		t.Error("all are known")
	}
}

// TestHandleBlocks: blocks after one that is not full are not in use. A circular list ends with its caller.
func TestHandleBlocks(t *testing.T) {
	w, h, _ := dumpHeap(t)
	d := &h.vm.l.dump
	d.slots, d.top, d.next = 0, 8*blockHandles, 8*blockHandles+8
	first, second := w.alloc(512), w.alloc(512)
	for i := range uint64(blockHandles) {
		w.put64(first+8*i, 0x1000+8*i)
		w.put64(second+8*i, 0x2000+8*i)
	}
	w.put64(first+8*5, 1) // free
	w.put64(first+uint64(d.top), blockHandles)
	w.put64(first+uint64(d.next), second)
	w.put64(second+uint64(d.top), 2)
	w.put64(second+uint64(d.next), first)
	n, free := 0, 0
	count := func(object, _ uint64) bool {
		if n++; object == 0 {
			free++
		}
		return n < 1000
	}
	if !h.eachInBlocks(first, count) || n != blockHandles+2 || free != 1 {
		t.Errorf("%d handles, %d of them free", n, free)
	}
	w.put64(second+uint64(d.top), blockHandles)
	if n = 0; h.eachInBlocks(first, count) || n != 1000 {
		t.Errorf("%d handles of a circle", n)
	}
}

// FuzzFields: for any stream or list of fields, the number of fields is within the bound.
func FuzzFields(f *testing.F) {
	f.Add([]byte{3, 1, 40, 41, 42, 43, 1, 50, 51, 52, 53, 1}, uint16(1))
	f.Add(binary.LittleEndian.AppendUint16(make([]byte, 22), 9), uint16(2))
	vm := newWorld(f, loadTables(f)[0]).vm
	f.Fuzz(func(t *testing.T, b []byte, count uint16) {
		const most = 100
		fields, err := vm.fieldStream(b, most, false)
		if err == nil && (len(fields) > most || len(fields) > len(b)) {
			t.Errorf("%d fields in %d bytes", len(fields), len(b))
		}
		if fields, err = fieldTuples(b, int(count), most); err == nil && len(fields) != int(count) {
			t.Errorf("%d fields, want %d", len(fields), count)
		}
	})
}
