package vmstructs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// walkedHeap makes a Heap of an object world. Its bytes are at pieceAt in the target.
func walkedHeap(w *objectWorld) (*Heap, *HeapArea) {
	w.put(pieceAt, w.heap...)
	return &Heap{vm: w.vm, health: &Health{vm: w.vm}, Objects: w.objects},
		&HeapArea{Start: pieceAt, Top: pieceAt + uint64(len(w.heap)), Part: OldPart}
}

func never() bool { return false }

// walked lists the objects that a walk of an extent finds.
func walked(h *Heap, a *HeapArea, from, to uint64) (found []string, unread Unread) {
	_, unread, _ = h.Walk(a, from, to, never, func(o *Object) {
		found = append(found, fmt.Sprintf("+%d %s %d", o.Addr-pieceAt, o.Class.Name, o.Bytes))
	})
	return found, unread
}

// mixedWorld is a heap of many objects.
func mixedWorld(t testing.TB, h header, objects int) *objectWorld {
	w := newObjectWorld(t, h)
	plain, bytes, longs := w.klass("a/B", 24), w.klass("[B", w.arrayHelper(0)), w.klass("[J", w.arrayHelper(3))
	for i := range objects {
		switch n := int32(i * 7 % 90); i % 3 {
		case 0:
			w.object(plain, 24, 0, 0)
		case 1:
			w.object(bytes, w.lengthAt+4+int(n), w.lengthAt, n)
		default:
			w.object(longs, w.lengthAt+4+8*int(n), w.lengthAt, n)
		}
	}
	return w
}

// TestWalkExtents: the extents of an area, wherever they begin, have all objects of the area, each once.
func TestWalkExtents(t *testing.T) {
	for _, header := range headers {
		t.Run(header.name, func(t *testing.T) {
			h, a := walkedHeap(mixedWorld(t, header, 3000))
			all, unread := walked(h, a, a.Start, a.Top)
			if len(all) != 3000 || unread != (Unread{}) {
				t.Fatalf("%d objects, unread %+v", len(all), unread)
			}
			for _, size := range []uint64{64 << 10, 8 << 10, 1000 &^ 31} {
				var parts []string
				for at := a.Start; at < a.Top; at += size {
					found, unread := walked(h, a, at, min(at+size, a.Top))
					parts = append(parts, found...)
					if unread != (Unread{}) {
						t.Errorf("from +%d unread %+v", at-a.Start, unread)
					}
				}
				if !slices.Equal(parts, all) {
					t.Errorf("pieces of %d have %d objects of %d", size, len(parts), len(all))
				}
			}
		})
	}
}

// TestWalkBuffer: old memory between the top and the end of a thread's buffer looks like objects, but is not counted.
// The object before the top may be incomplete. It is not counted either, but the objects after the buffer are.
func TestWalkBuffer(t *testing.T) {
	w := newObjectWorld(t, headers[0])
	plain, bytes := w.klass("a/B", 24), w.klass("[B", w.arrayHelper(0))
	for range 10 {
		w.object(plain, 24, 0, 0)
	}
	h, a := walkedHeap(w)
	addBuffer([]*HeapArea{a}, pieceAt+48, pieceAt+96, pieceAt+192)
	found, unread := walked(h, a, a.Start, a.Top)
	want := []string{"+0 a.B 24", "+24 a.B 24", "+48 a.B 24", "+72 a.B 24", "+192 a.B 24", "+216 a.B 24"}
	if !slices.Equal(found, want) || unread != (Unread{Buffers: 96}) {
		t.Errorf("%q %+v", found, unread)
	}
	if found, unread = walked(h, a, pieceAt+120, a.Top); !slices.Equal(found, want[4:]) || unread.Buffers != 72 {
		t.Errorf("from within the buffer: %q %+v", found, unread)
	}
	w.heap = w.heap[:72]
	w.object(bytes, 24, w.lengthAt, 1000) // the length is that of a former object
	w.put(pieceAt, w.heap...)
	found, unread = walked(h, a, a.Start, a.Top)
	want = slices.Delete(want, 3, 4)
	if !slices.Equal(found, want) || unread != (Unread{Buffers: 96, Making: 24}) {
		t.Errorf("half made: %q %+v", found, unread)
	}
}

// TestWalkLocked: the header of an object that is locked, or has a monitor, is an address. On aarch64 it may be one of
// the highest addresses. Such an object is found, and proves the length of the object before it.
func TestWalkLocked(t *testing.T) {
	for _, mark := range []uint64{0x7fff_8052dcc0, 0xffff_8052dcc0, 0xffff_8052dcc2} {
		w := newObjectWorld(t, headers[0])
		w.object(w.klass("[B", w.arrayHelper(0)), 16+provenFrom, w.lengthAt, provenFrom)
		w.object(w.klass("a/B", 24), 24, 0, 0)
		binary.LittleEndian.PutUint64(w.heap[16+provenFrom:], mark)
		h, a := walkedHeap(w)
		found, unread := walked(h, a, a.Start, a.Top)
		if want := []string{"+0 byte[] 1040", "+1040 a.B 24"}; !slices.Equal(found, want) || unread != (Unread{}) {
			t.Errorf("%#x: %q %+v", mark, found, unread)
		}
		if o, ok := h.ObjectIn(pieceAt+1040, w.heap[1040:]); !ok || o.Class.Name != "a.B" {
			t.Errorf("%#x: the object is %+v, %v", mark, o, ok)
		}
	}
}

// TestWalkMediumPage: in a medium page of ZGC there are gaps between the objects. Old memory in the gaps looks like
// objects.
func TestWalkMediumPage(t *testing.T) {
	w := newObjectWorld(t, headers[0])
	plain, longs := w.klass("a/B", 24), w.klass("[J", w.arrayHelper(3))
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("+%d long[] %d", len(w.heap), 16+16*(500+i)))
		for w.object(longs, 16+16*(500+i), w.lengthAt, int32(2*(500+i))); len(w.heap)%4096 > 0; {
			w.object(plain, 16, 0, 0)
		}
	}
	h, a := walkedHeap(w)
	a.pitch = 4096
	if found, unread := walked(h, a, a.Start, a.Top); !slices.Equal(found, want) || unread != (Unread{}) {
		t.Errorf("%q %+v", found, unread)
	}
	if found, unread := walked(h, a, a.Start+100, a.Top); !slices.Equal(found, want[1:]) || unread != (Unread{}) {
		t.Errorf("from within an object: %q %+v", found, unread)
	}
}

// TestWalkDamaged: memory that cannot be read is counted as such, by reason. Objects after it are found again, and no
// class is invented.
func TestWalkDamaged(t *testing.T) {
	const hurt = 1000 // the number of the damaged object
	for _, c := range []struct {
		name   string
		damage func(w *objectWorld, b []byte)
		reason func(Unread) uint64
	}{
		{"klass to nowhere", func(w *objectWorld, b []byte) { binary.LittleEndian.PutUint32(b[8:], 0x7fffff0) },
			func(u Unread) uint64 { return u.Unknown }},
		{"no klass yet", func(w *objectWorld, b []byte) { clear(b[8:12]) }, func(u Unread) uint64 { return u.Making }},
		{"forwarded", func(w *objectWorld, b []byte) { binary.LittleEndian.PutUint64(b, pieceAt|3) },
			func(u Unread) uint64 { return u.Moving }},
		{"a length that is a lie", func(w *objectWorld, b []byte) {
			binary.LittleEndian.PutUint32(b[w.lengthAt:], 5000)
		}, func(u Unread) uint64 { return u.Unknown }},
		{"an endless array", func(w *objectWorld, b []byte) {
			binary.LittleEndian.PutUint32(b[w.lengthAt:], 1<<31-1)
		}, func(u Unread) uint64 { return u.Unknown }},
		{"a negative length", func(w *objectWorld, b []byte) {
			binary.LittleEndian.PutUint32(b[w.lengthAt:], 1<<31)
		}, func(u Unread) uint64 { return u.Unknown }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := mixedWorld(t, headers[0], 3000)
			h, a := walkedHeap(w)
			all, _ := walked(h, a, a.Start, a.Top)
			var at int
			fmt.Sscanf(all[hurt], "+%d", &at) // an array of bytes: 1000 % 3 is 1
			c.damage(w, w.heap[at:])
			w.put(pieceAt, w.heap...)
			h.Forget()
			found, unread := walked(h, a, a.Start, a.Top)
			if unread.Sum() == 0 || unread.Sum() > 4096 || c.reason(unread) != unread.Sum() {
				t.Errorf("unread %+v", unread)
			}
			if lost := len(all) - len(found); lost < 1 || lost > 20 {
				t.Errorf("%d of %d objects are lost", lost, len(all))
			}
			known := map[string]bool{}
			for _, f := range all {
				known[f] = true
			}
			for _, f := range found {
				if !known[f] {
					t.Errorf("made up: %s", f)
				}
			}
		})
	}
}

// TestWalkHostile: random and damaged heaps cost a bounded number of reads, and each byte counts at most once, as an
// object's or as unread.
func TestWalkHostile(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		w := mixedWorld(t, headers[round%len(headers)], 500)
		for range rnd.IntN(400) {
			i := rnd.IntN(len(w.heap))
			w.heap[i] = byte(rnd.Uint32())
			if rnd.IntN(4) == 0 {
				rest := w.heap[i:]
				for k := range rest[:min(len(rest), 64)] {
					rest[k] = byte(rnd.Uint32())
				}
			}
		}
		h, a := walkedHeap(w)
		if round%5 == 0 {
			a.Top += 1 << 20 // memory that does not exist
		}
		for range round % 4 {
			start := a.Start + uint64(rnd.IntN(len(w.heap)))&^7
			addBuffer([]*HeapArea{a}, start, start+uint64(rnd.IntN(2000))&^7, start+uint64(rnd.IntN(4000))&^7)
		}
		w.reads = 0
		end, sum := uint64(0), uint64(0)
		_, unread, whole := h.Walk(a, a.Start, a.Top, never, func(o *Object) {
			if o.Addr < end || o.Bytes < uint64(w.header.head) || o.Bytes > a.Top-o.Addr {
				t.Fatalf("round %d: %d bytes at +%d, the last one ended at +%d", round, o.Bytes, o.Addr-pieceAt, end-pieceAt)
			}
			end = o.Addr + o.Bytes
			sum += o.Bytes
		})
		if all := sum + unread.Sum(); !whole || all != a.Top-a.Start {
			t.Errorf("round %d: %d of %d bytes are accounted for: %d and %+v", round, all, a.Top-a.Start, sum, unread)
		}
		if w.reads > 60_000 {
			t.Errorf("round %d: %d reads", round, w.reads)
		}
	}
}

// TestWalkGoesOn: a walk that continues where the previous one ended does not search. It reads no more than one walk
// through everything, and finds objects that a search would reject.
func TestWalkGoesOn(t *testing.T) {
	w := newObjectWorld(t, headers[0])
	plain := w.klass("a/B", 24)
	for range 1000 {
		w.object(plain, 24, 0, 0)
		w.heap[len(w.heap)-24] = 2 // a thread holds its lock, so a search would reject it
	}
	h, a := walkedHeap(w)
	found := 0
	for at := a.Start; at < a.Top; at += 1000 {
		_, unread, whole := h.Walk(a, at, min(at+1000, a.Top), never, func(*Object) { found++ })
		if unread != (Unread{}) || !whole {
			t.Fatalf("from +%d: %+v %v", at-a.Start, unread, whole)
		}
	}
	if found != 1000 {
		t.Errorf("%d objects of 1000", found)
	}
	if again, _ := walked(h, a, a.Start+1000, a.Top); len(again) != 0 {
		t.Errorf("a walk from anywhere knows no place: %d objects", len(again))
	}
}

// TestWalkHumongous: an object that is larger than its regions is not counted, but its bytes are. In an area with one
// object, nothing else is searched for.
func TestWalkHumongous(t *testing.T) {
	for _, c := range []struct {
		name   string
		length int32
		want   int
		unread Unread
	}{{"whole", 5000, 1, Unread{}}, {"larger than its regions", 1 << 20, 0, Unread{Unknown: 8192}}} {
		w := newObjectWorld(t, headers[0])
		bytes := w.klass("[B", w.arrayHelper(0))
		w.object(bytes, 8192, w.lengthAt, c.length)
		h, a := walkedHeap(w)
		a.Part = HumongousPart
		w.reads = 0
		if found, unread := walked(h, a, a.Start, a.Top); len(found) != c.want || unread != c.unread {
			t.Errorf("%s: %q %+v", c.name, found, unread)
		}
		binary.LittleEndian.PutUint32(w.heap[8:], 0)
		w.put(pieceAt, w.heap...)
		w.reads = 0
		if found, unread := walked(h, a, a.Start, a.Top); len(found) != 0 || unread != (Unread{Making: 8192}) || w.reads > 2 {
			t.Errorf("%s: not made yet: %q %+v, %d reads", c.name, found, unread, w.reads)
		}
	}
}

// TestFindEnds: a search through memory in which everything looks like an object ends when stop returns true.
func TestFindEnds(t *testing.T) {
	w := newObjectWorld(t, headers[0])
	plain, bytes := w.klass("a/B", 24), w.klass("[B", w.arrayHelper(0))
	for range 5000 { // chains of four
		w.object(plain, 24, 0, 0)
		w.object(plain, 24, 0, 0)
		w.object(plain, 24, 0, 0)
		w.object(bytes, 24, w.lengthAt, -1)
	}
	h, a := walkedHeap(w)
	asked := 0
	_, _, whole := h.Walk(a, a.Start+8, a.Top, func() bool { asked++; return asked > 5 }, func(o *Object) {
		t.Errorf("found an object at +%d", o.Addr-a.Start)
	})
	if whole || asked > 8 {
		t.Errorf("it was told to end %d times; to the end: %v", asked-5, whole)
	}
}

// TestHeapBounds: a heap that claims more regions than goprof lists is refused for that reason. Of many classes with
// long names, few are cached.
func TestHeapBounds(t *testing.T) {
	w := newObjectWorld(t, headers[0])
	h, _ := walkedHeap(w)
	_, err := h.health.eachRegion(8, maxAreas+1, regionFields{0, 8, 16, 24}, func(regionRow) { t.Error("a region") })
	if !errors.Is(err, ErrManyRegions) || errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	table := w.alloc(8 * 16)
	for i := range uint64(16) {
		w.put64(table+8*i, 8*(i+1))
	}
	if pages, err := h.pageList(table, 16); err != nil || len(pages) != 16 {
		t.Errorf("%d pages, %v", len(pages), err)
	}
	for i := range 64 {
		w.object(w.klass(fmt.Sprintf("a/B%d", i), 24), 24, 0, 0)
	}
	h, a := walkedHeap(w)
	h.text = maxObjectText
	if found, _ := walked(h, a, a.Start, a.Top); len(found) != 64 || h.text > 64*8 || len(h.classes) > 64 {
		t.Errorf("%d objects, %d bytes of names", len(found), h.text)
	}
}
