package vmstructs

import (
	"encoding/binary"
	"slices"
	"testing"
)

// TestScopeLocks reads C2's record of holdMonitor in JDK 27, which keeps the object in rbp. It also reads two records
// that were made by the rules of code/debugInfo.cpp.
func TestScopeLocks(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want []siteLock
	}{
		{"in the frame pointer", []byte{2, 0x82, 1, 0xd3, 3, 0}, []siteLock{{scope: 1, at: 40, saved: true}}},
		{"in the frame, narrow", []byte{2, 0x82, 1, 1 + 9 + 3<<5, 0}, []siteLock{{scope: 1, at: 12, narrow: true}}},
		{"eliminated, then a constant, then in the frame",
			[]byte{4, 1, 1, 1 + 2 + 1<<5, 1, 1, 3, 9, 0, 1, 1, 1 + 2 + 2<<5, 0},
			[]siteLock{{scope: 1, at: 8}}},
		{"of an object that is allocated nowhere", []byte{3, 1, 6, 1}, nil},
		{"cut off", []byte{9, 1, 1, 1 + 2}, nil},
	} {
		d := debugInfo{scopes: c.b}
		got := d.scopeLocks(nil, 1, 0, 1)
		if c.name == "cut off" {
			if len(got) > 1 {
				t.Errorf("%s: %+v", c.name, got)
			}
			continue
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, should be %+v", c.name, got, c.want)
		}
	}
}

func FuzzLockSites(f *testing.F) {
	for _, b := range capturedDebugInfo {
		f.Add([]byte(b.scopes), int32(1), b.x)
	}
	f.Add([]byte{0, 2, 3, 2, 1, 1, 8, 2, 0x82, 1, 0xd3, 3, 0}, int32(1), uint8(1))
	f.Fuzz(func(t *testing.T, scopes []byte, offset int32, x uint8) {
		d := debugInfo{scopes: scopes}
		got := d.locks(offset, x)
		if len(got) > maxFrameLocks {
			t.Fatalf("%d locks", len(got))
		}
		for _, l := range got {
			if l.scope < 0 || l.scope >= maxInline {
				t.Fatalf("in scope %d", l.scope)
			}
		}
	})
}

func FuzzLockStack(f *testing.F) {
	f.Add(binary.LittleEndian.AppendUint64(make([]byte, 8), 1<<40), uint16(8), uint16(1920))
	f.Fuzz(func(t *testing.T, b []byte, base, stack uint16) {
		k := &Locks{vm: &VM{l: &layout{locks: lockLayout{stack: offset(stack), base: offset(base), top: sized{0, 4}}}}}
		if refs := k.lockStack(b); 8*len(refs) > len(b) {
			t.Fatalf("%d references in %d bytes", len(refs), len(b))
		}
	})
}

// TestTimedOnCarrier: a carrier waits for a lock while it runs a virtual thread. The virtual thread's wait may have a
// time limit, and its own object shows that.
func TestTimedOnCarrier(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		th, _ := w.namedThread("ForkJoinPool-1-worker-1")
		object := th.obj
		if w.l.thread.objHandle {
			object, _ = w.vm.wideOopAt(th.obj)
		}
		w.vm.java.status = 40
		w.put32(object+40, 673) // TIMED_PARKED
		k := &Locks{vm: w.vm}
		if s := k.statusOf(&lockThread{Thread: th, object: object, virtual: 7}); s&statusTimed == 0 {
			t.Errorf("status %d", s)
		}
	})
}

// TestShortMonitors: the monitors of this JVM are smaller than the fields in them.
func TestShortMonitors(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		l := &w.vm.l.locks
		l.blocks, l.stride, l.inBlock, l.link, l.span = w.alloc(8), 8, 1, 64, 72
		w.put64(l.blocks, w.alloc(64))
		k := &Locks{vm: w.vm}
		if k.monitorBlocks(); len(k.listed) != 0 {
			t.Errorf("%d monitors", len(k.listed))
		}
	})
}

// TestForwardings: the table of forwardings follows the pointer to the table of pages, and has its number of entries.
func TestForwardings(t *testing.T) {
	const symbol = "_ZN11ZGeneration4_oldE"
	eachWorld(t, func(t *testing.T, w *world) {
		at, generation := w.alloc(8), w.alloc(128)
		w.symbols[symbol] = at
		w.put64(at, generation)
		w.put64(generation+16, 4711) // the pointer to the table of pages
		w.put64(generation+24, 42)
		w.put64(generation+32, 43)
		k := &Locks{vm: w.vm}
		for pages, want := range map[uint64]zTable{4711: {43, 42}, 4712: {}} {
			if got := k.tableAt(k.generation(symbol, pages)); got != want {
				t.Errorf("behind %d: %+v, not %+v", pages, got, want)
			}
		}
	})
}

// TestForwardingUnread: if an entry of a forwarding cannot be read, it is not known where an object is. The others are
// read, and a set of objects reports that it is not complete.
func TestForwardingUnread(t *testing.T) {
	const page, base, mask = 0x5f0000000000, 1 << 40, 1<<40 - 1
	eachWorld(t, func(t *testing.T, w *world) {
		table, from := w.alloc(16), uint64(page+pageSize-32-16) // two of four entries are on the page
		w.put64(table, from)
		w.put64(from+16, 3) // ZForwarding::_object_alignment_shift
		w.put64(from+24, 4) // its number of entries
		w.put64(from+32, 0)
		k := &Locks{vm: w.vm, rests: true}
		k.pages = zPages{on: true, mask: mask, moved: [2]zTable{{table, 2}},
			l: &zPagesLayout{shift: 16, length: 24, size: 32}}
		k.still = stillZ{areas: []*HeapArea{{Start: base, Top: base + 4<<granule}}, forwardings: map[uint64]*zForwarding{}}
		unread := 0
		for i := range uint64(64) {
			_, known := k.now(base+8*i, anyMove)
			if want := zHash(uint32(i))&3 < 2; known != want {
				t.Errorf("object %d: known %v", i, known)
			}
			if !known {
				unread++
			}
		}
		if _, known := k.now(base+1<<granule, anyMove); !known || unread == 0 || unread == 64 {
			t.Errorf("a page that has no forwarding: %v; %d of 64 are not known", known, unread)
		}
		s := &Sought{h: &Heap{vm: w.vm, z: k}}
		if s.addMoved(); !s.Partly {
			t.Error("the set says that it is whole")
		}
		w.put64(page+pageSize, 0) // now all of it can be read
		w.put64(page+pageSize+8, 0)
		s.Partly = false
		if s.addMoved(); s.Partly {
			t.Error("the set says that it is not whole")
		}
		k.pages.moved[0].entries = 1 << 12 // more than can be read
		if s.addMoved(); !s.Partly {
			t.Error("a table that ends early counts as whole")
		}
	})
}

// TestLockStackOwner: the owner is the first thread with the object in its LockStack, also in the next round.
func TestLockStackOwner(t *testing.T) {
	k := &Locks{vm: &VM{l: &layout{}}, mask: ^uint64(0)}
	k.begin([]Thread{{Addr: 8}, {Addr: 16}, {Addr: 24}})
	k.threads[1].stack, k.threads[2].stack = []uint64{0x100, 0x108}, []uint64{0x108, 0x110}
	for object, want := range map[uint64]uint64{0x100: 16, 0x108: 16, 0x110: 24, 0x118: 0} {
		if o := k.inLockStack(object); o.Thread != want {
			t.Errorf("%#x: of %d, not %d", object, o.Thread, want)
		}
	}
	k.begin([]Thread{{Addr: 8}})
	if o := k.inLockStack(0x100); o != (LockOwner{}) {
		t.Errorf("of the round before: %+v", o)
	}
}

// TestNotParkedYet: a thread stores the object that it will wait for before it parks. Until it is parked, it waits for
// nothing.
func TestNotParkedYet(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		th, _ := w.namedThread("worker")
		object := th.obj
		if w.l.thread.objHandle {
			object, _ = w.vm.wideOopAt(th.obj)
		}
		w.vm.java.status = 40
		lock, klass := w.alloc(64), w.alloc(64)
		w.put64(lock+8, klass)
		k := &Locks{vm: w.vm, mask: ^uint64(0), classes: map[uint64]*lockClass{klass: {name: "a/Lock"}}}
		for status, want := range map[uint32]Wanted{5: {}, 0: {}, 4711: {},
			657: {Lock: Lock{Kind: UnownableLock, Class: "a/Lock", Object: lock}, How: WaitToUnpark},
			673: {Lock: Lock{Kind: UnownableLock, Class: "a/Lock", Object: lock}, How: WaitToUnpark, Timed: true}} {
			w.put32(object+40, status)
			if got := k.parked(&lockThread{Thread: th, object: object, blocker: lock}); got != want {
				t.Errorf("status %d: %+v", status, got)
			}
		}
	})
}

// TestColourOf: the number of the bit that is the colour of a reference. The first row is from a JDK 25 on aarch64.
func TestColourOf(t *testing.T) {
	for _, c := range []struct {
		reference, bad uint64
		colour, good   int
		ok             bool
	}{
		{0x400008d0668e930, 0x4000, 0, 2, true},
		{0x400008d06681930, 0xb000, 0, 2, true}, // the same on x86-64
		{0x400008d0668b930, 0x4000, 2, 2, true},
		{0x400008d06684930, 0xb000, 2, 2, true},
		{0x400008d06683930, 0xb000, 0, 0, false},
		{0x400008d0668c930, 0x4000, 0, 0, false},
		{0x400008d06681930, 0x3000, 0, 0, false},
	} {
		colour, good, ok := zColourOf(c.reference, c.bad)
		if ok != c.ok || ok && (colour != c.colour || good != c.good) {
			t.Errorf("%#x where %#x is bad: %d, %d, %v", c.reference, c.bad, colour, good, ok)
		}
	}
}
