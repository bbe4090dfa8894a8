package vmstructs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// header is the form of a JVM's object headers.
type header struct {
	name     string
	klasses  klassModel
	head     int
	lengthAt int
	align    uint64
}

var headers = []header{
	{"compressed", klassModel{narrow: true, base: worldData &^ 0xfffffff, shift: 3}, 16, 12, 8},
	{"wide", klassModel{}, 16, 16, 8},
	{"compact", klassModel{compact: true, narrow: true, base: worldData &^ 0xfffffff, shift: 10}, 8, 8, 8},
	{"compressed, aligned by 32", klassModel{narrow: true, base: worldData &^ 0xfffffff, shift: 0}, 16, 12, 32},
}

// objectWorld is a JVM with some classes, and a piece of a heap.
type objectWorld struct {
	*world
	header
	objects *Objects
	heap    []byte
}

const pieceAt = 0x7e0000001000

func newObjectWorld(t testing.TB, h header) *objectWorld {
	w := &objectWorld{world: newWorld(t, loadTables(t)[0]), header: h}
	w.next = (w.next + 1<<10) &^ (1<<10 - 1) // classes begin at addresses that fit into a compact header
	w.objects = &Objects{vm: w.vm, klasses: h.klasses, head: h.head, lengthAt: h.lengthAt, align: h.align, oopSize: 40,
		bitmap: 2}
	w.objects.Forget()
	return w
}

// klass makes a class with a layout helper.
func (w *objectWorld) klass(name string, helper uint32) uint64 {
	w.next = (w.next + 1<<10) &^ (1<<10 - 1)
	klass := w.alloc(512)
	symbol := w.alloc(64)
	w.put16(symbol+uint64(w.l.method.symLength), uint16(len(name)))
	w.putString(symbol+uint64(w.l.method.symBody), name)
	w.put64(klass+uint64(w.l.method.klassName), symbol)
	w.put32(klass+uint64(w.l.objects.layoutHelper), helper)
	return klass
}

func (w *objectWorld) arrayHelper(logWidth uint32) uint32 {
	return 0xc0000000 | uint32(w.header.lengthAt+4)<<helperHeaderShift | logWidth
}

// object appends an object of size bytes. Its int at an offset is n.
func (w *objectWorld) object(klass uint64, size, at int, n int32) {
	b := make([]byte, (uint64(size)+w.header.align-1)&^(w.header.align-1))
	mark := uint64(1)
	k := &w.header.klasses
	switch narrow := (klass - k.base) >> k.shift; {
	case k.compact:
		mark |= narrow << compactShift
	case k.narrow:
		binary.LittleEndian.PutUint32(b[8:], uint32(narrow))
	default:
		binary.LittleEndian.PutUint64(b[8:], klass)
	}
	binary.LittleEndian.PutUint64(b, mark)
	if at > 0 {
		binary.LittleEndian.PutUint32(b[at:], uint32(n))
	}
	w.heap = append(w.heap, b...)
}

// walk lists the objects that a walk in pieces of some bytes finds.
func (w *objectWorld) walk(piece int) (found []string, err error) {
	end := uint64(pieceAt + len(w.heap))
	for at := uint64(pieceAt); at < end; {
		b := w.heap[at-pieceAt:]
		b = b[:min(len(b), piece)]
		next, err := w.objects.Walk(at, b, func(addr uint64, class *ObjectClass, size uint64) {
			filler := ""
			if class.Filler {
				filler = " filler"
			}
			found = append(found, fmt.Sprintf("+%d %s %d%s", addr-pieceAt, class.Name, size, filler))
		})
		if err != nil || next == at {
			return append(found, fmt.Sprintf("+%d", next-pieceAt)), err
		}
		at = next
	}
	return found, nil
}

// TestWalkObjects walks a heap with an object of each kind, with all forms of headers, in one piece and in pieces that
// end in the middle of objects.
func TestWalkObjects(t *testing.T) {
	for _, h := range headers {
		t.Run(h.name, func(t *testing.T) {
			w := newObjectWorld(t, h)
			plain, finalized := w.klass("a/B", 24), w.klass("a/Finalized", 40|helperSlow)
			bytes, longs := w.klass("[B", w.arrayHelper(0)), w.klass("[J", w.arrayHelper(3))
			refs, mirror := w.klass("[La/B;", w.arrayHelper(2)), w.klass("java/lang/Class", 96|helperSlow)
			filler, rest := w.klass("jdk/internal/vm/FillerObject", uint32(w.header.head)),
				w.klass("Ljdk/internal/vm/FillerArray;", w.arrayHelper(2))
			head := w.header.lengthAt + 4
			var want []string
			add := func(klass uint64, name string, size, at int, n int32) {
				from := len(w.heap)
				w.object(klass, size, at, n)
				want = append(want, fmt.Sprintf("+%d %s %d", from, name, len(w.heap)-from))
			}
			add(plain, "a.B", 24, 0, 0)
			add(finalized, "a.Finalized", 40, 0, 0)
			add(bytes, "byte[]", head+13, w.header.lengthAt, 13)
			add(bytes, "byte[]", head, w.header.lengthAt, 0)
			add(longs, "long[]", head+8*5, w.header.lengthAt, 5)
			add(refs, "a.B[]", head+4*3, w.header.lengthAt, 3)
			add(mirror, "java.lang.Class", 8*15, 40, 15)
			add(filler, "jdk.internal.vm.FillerObject", w.header.head, 0, 0)
			want[len(want)-1] += " filler"
			add(rest, "Ljdk.internal.vm.FillerArray;", head+4*100, w.header.lengthAt, 100)
			want[len(want)-1] += " filler"
			add(plain, "a.B", 24, 0, 0)
			for _, piece := range []int{1 << 20, 128, 57} {
				if got, err := w.walk(piece); err != nil || !slices.Equal(got, want) {
					t.Errorf("in pieces of %d: %v\n%q, want\n%q", piece, err, got, want)
				}
			}
		})
	}
}

// TestWalkStackChunk: a map of references follows the stack of a virtual thread.
func TestWalkStackChunk(t *testing.T) {
	w := newObjectWorld(t, headers[0])
	chunk, plain := w.klass(classChunk, 48|helperSlow), w.klass("a/B", 24)
	w.objects.classes[chunk] = &ObjectClass{Klass: chunk, Name: "jdk.internal.vm.StackChunk", kind: chunkObject, size: 48,
		sizeAt: 24}
	for _, words := range []int{0, 1, 32, 33} {
		w.object(chunk, 48+8*words+(2*words+63)/64*8, 24, int32(words))
	}
	w.object(plain, 24, 0, 0)
	got, err := w.walk(1 << 20)
	want := []string{"+0 jdk.internal.vm.StackChunk 48", "+48 jdk.internal.vm.StackChunk 64",
		"+112 jdk.internal.vm.StackChunk 312", "+424 jdk.internal.vm.StackChunk 328", "+752 a.B 24"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%q, want\n%q", err, got, want)
	}
}

// TestWalkEnds: a walk ends at an invalid object, with the reason, and has visited the objects before it.
func TestWalkEnds(t *testing.T) {
	for _, h := range headers {
		for _, c := range []struct {
			name   string
			want   error
			damage func(w *objectWorld)
		}{
			{"nothing there yet", ErrNoObject, func(w *objectWorld) { w.heap = append(w.heap, make([]byte, 64)...) }},
			{"moved away", ErrMoved, func(w *objectWorld) {
				w.heap = append(w.heap, make([]byte, 64)...)
				w.heap[len(w.heap)-64] = 0x73
			}},
			{"class unloaded", ErrNoClass, func(w *objectWorld) { w.object(w.header.klasses.base+1<<26, 24, 0, 0) }},
			{"class of no size", ErrNoClass, func(w *objectWorld) { w.object(w.klass("a/Zero", 0), 24, 0, 0) }},
			{"instance called like an array", ErrNoClass, func(w *objectWorld) { w.object(w.klass("[I", 24), 24, 0, 0) }},
			{"array called like a class", ErrNoClass, func(w *objectWorld) {
				w.object(w.klass("a/Array", w.arrayHelper(0)), 24, 0, 0)
			}},
			{"elements of 32 KB", ErrNoClass, func(w *objectWorld) { w.object(w.klass("[I", w.arrayHelper(15)), 24, 0, 0) }},
			{"array of -1", ErrNoSize, func(w *objectWorld) {
				w.object(w.klass("[I", w.arrayHelper(2)), 24, w.header.lengthAt, -1)
			}},
			{"class of no words", ErrNoSize, func(w *objectWorld) {
				w.object(w.klass("java/lang/Class", 96|helperSlow), 96, 40, 0)
			}},
			{"stack chunk without a size", ErrNoSize, func(w *objectWorld) {
				w.object(w.klass(classChunk, 48|helperSlow), 96, 24, 1)
			}},
		} {
			t.Run(h.name+"/"+c.name, func(t *testing.T) {
				w := newObjectWorld(t, h)
				plain := w.klass("a/B", 24)
				w.object(plain, 24, 0, 0)
				at := len(w.heap)
				c.damage(w)
				w.object(plain, 24, 0, 0)
				got, err := w.walk(1 << 20)
				want := []string{fmt.Sprintf("+0 a.B %d", at), fmt.Sprintf("+%d", at)}
				if !errors.Is(err, c.want) || !slices.Equal(got, want) {
					t.Errorf("%v, want %v\n%q, want\n%q", err, c.want, got, want)
				}
			})
		}
	}
}

// TestWalkForgets: another class may get the address of one that was unloaded.
func TestWalkForgets(t *testing.T) {
	w := newObjectWorld(t, headers[0])
	klass := w.klass("a/B", 24)
	w.object(klass, 24, 0, 0)
	w.object(klass, 24, 0, 0)
	for _, c := range []struct {
		forget bool
		want   string
	}{{false, "+24 a.B 24"}, {false, "+24 a.B 24"}, {true, "+0 a.B 48"}} {
		if c.forget {
			w.put32(klass+uint64(w.l.objects.layoutHelper), 48)
			w.objects.Forget()
		}
		if got, err := w.walk(1 << 20); err != nil || got[len(got)-1] != c.want {
			t.Errorf("%v %q, want %s", err, got, c.want)
		}
	}
}

// TestObjectsOfTables: every release exports the fields that a walk needs.
func TestObjectsOfTables(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		if l := w.l.objects; !l.layoutHelper.ok() || l.oopSize == 0 {
			t.Errorf("%+v", l)
		}
	})
}

// FuzzObjects walks arbitrary bytes with classes of arbitrary layouts. Objects follow each other, and none is smaller
// than a header.
func FuzzObjects(f *testing.F) {
	for i, h := range headers {
		w := newObjectWorld(f, h)
		klass := w.klass("a/B", 24)
		w.object(klass, 24, 0, 0)
		w.object(w.klass("[B", w.arrayHelper(0)), 64, h.lengthAt, 40)
		f.Add(uint8(i), w.heap, uint32(24), "a/B", uint16(64))
	}
	worlds := map[uint8]*objectWorld{}
	f.Fuzz(func(t *testing.T, which uint8, heap []byte, helper uint32, name string, piece uint16) {
		which %= uint8(len(headers))
		w := worlds[which]
		if w == nil {
			w = newObjectWorld(t, headers[which])
			worlds[which] = w
		}
		if len(name) > 512 || len(heap) > 1<<16 {
			return
		}
		w.next = worldData + 1<<20
		w.objects.Forget()
		w.vm.methods.init()
		w.heap = heap
		w.klass(name, helper)
		before, n := uint64(pieceAt), 0
		for at := uint64(pieceAt); at < pieceAt+uint64(len(heap)); {
			b := heap[at-pieceAt:]
			b = b[:min(len(b), int(piece)+64)]
			next, err := w.objects.Walk(at, b, func(addr uint64, class *ObjectClass, size uint64) {
				if addr != before || size < uint64(w.header.head) || size%w.header.align != 0 || class == nil || size > 1<<36 {
					t.Fatalf("an object of %d bytes at %#x, the one before ended at %#x", size, addr, before)
				}
				before = addr + size
				if n++; n > len(heap)/w.header.head+1 {
					t.Fatalf("%d objects in %d bytes", n, len(heap))
				}
			})
			if next != before || next < at {
				t.Fatalf("the walk goes on at %#x, the last object ended at %#x", next, before)
			}
			if err != nil || next == at {
				return
			}
			at = next
		}
	})
}
