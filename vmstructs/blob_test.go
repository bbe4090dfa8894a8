package vmstructs

import (
	"errors"
	"slices"
	"strconv"
	"testing"
)

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// sample makes a class with two methods, and a blob at segment 4. Its code inlines one of the methods into the other.
func sample(w *world) (blob uint64) {
	pool := w.class("app/Main", "Main.java")
	escape := byte(2*10 + w.l.method.unsigned5X) // line 10
	lines := []byte{0xff, w.l.method.unsigned5X, escape, 5<<3 | 2, 0}
	outer := w.method(pool, 1, "outer", "()V", lines)
	inner := w.method(pool, 3, "inner", "(I)I", lines)
	return w.nmethod(4, 77, []uint64{inner, outer}, map[int32][]fakeScope{
		32: {{1, 6}, {2, 3}},
		64: {{2, 12}},
		80: nil, // nothing is known at this offset
	}, []int32{32, 64, 80})
}

func TestNmethodOfEveryJDK(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		at := sample(w)
		code := at + nmCodeAt
		b, err := w.vm.Blob(code + 40)
		if err != nil {
			t.Fatal(err)
		}
		if b.Kind != Nmethod || b.Addr != at || b.Begin != code || b.End != at+nmCodeEnd || b.CompileID != 77 ||
			b.Level != 4 ||
			b.FrameSize != 6 || b.FrameComplete != -1 || b.OSR || b.OrigPC != 40 || b.VerifiedEntry != code+16 ||
			b.StubBegin != at+nmCodeEnd-64 || b.DeoptHandlers[0] != at+nmCodeEnd-32 || b.Method.Full() != "app.Main.outer" {
			t.Errorf("%+v of %+v", b, b.Method)
		}
		for _, c := range []struct {
			name  string
			pc    uint64
			exact bool
			want  string
		}{
			{"return address", 32, true, "app.Main.inner:6:12 < app.Main.outer:3:10"},
			{"an instruction counts to the record behind it", 31, false, "app.Main.inner:6:12 < app.Main.outer:3:10"},
			{"at a record the next one counts", 32, false, "app.Main.outer:12:12"},
			{"no record for a return address", 33, true, "app.Main.outer:12:12"},
			{"second record", 64, true, "app.Main.outer:12:12"},
			{"empty record", 80, true, "app.Main.outer:-1:10"},
			{"behind all records", 200, false, "app.Main.outer:-1:10"},
			{"end of the code", nmCodeEnd - nmCodeAt, true, "app.Main.outer:-1:10"},
		} {
			s, err := w.vm.Scopes(b, code+c.pc, c.exact)
			if err != nil || tell(s) != c.want {
				t.Errorf("%s: %s %v, want %s", c.name, tell(s), err, c.want)
			}
		}
		if !b.HasPcDesc(code+32) || b.HasPcDesc(code+33) || b.HasPcDesc(code-1) || b.HasPcDesc(0) {
			t.Error("HasPcDesc")
		}
		records := slices.Collect(b.Records())
		if want := []uint64{code + 32, code + 64, code + 80}; !slices.Equal(records, want) {
			t.Errorf("records %x, want %x", records, want)
		}
		if m := b.Method; m.File != "Main.java" || m.Signature != "()V" || m.Native {
			t.Errorf("%+v", m)
		}
	})
}

func TestWarmPathsNeitherReadNorAllocate(t *testing.T) {
	w := newWorld(t, loadTables(t)[9])
	at := sample(w)
	pc := at + nmCodeAt + 32
	p := w.vm.NewProof()
	walk := func() {
		b, err := w.vm.Blob(pc)
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.vm.Scopes(b, pc, true)
		if err != nil {
			t.Fatal(err)
		}
		m, err := w.vm.Method(s[0].Method.Addr)
		if err != nil || m.Line(6) != 12 {
			t.Fatal(err)
		}
	}
	walk()
	reads := w.reads
	if n := testing.AllocsPerRun(100, walk); n != 0 || w.reads != reads {
		t.Errorf("%v allocations and %d reads in a warm walk", n, w.reads-reads)
	}
	b, _ := w.vm.Blob(pc)
	check := func() {
		p.Reset()
		p.Blob(b)
		p.Blob(b)
		p.Method(b.Method)
		if ok, err := p.Check(); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	check()
	if n := testing.AllocsPerRun(100, check); n != 0 {
		t.Errorf("%v allocations in a warm proof", n)
	}
}

func TestBlobLookup(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		const long = 600 // the map needs several hops for so many segments
		stub := w.blob(40, 2, "RuntimeStub - x_Java", 4, 100, 256-w.l.code.blockSize)
		big := w.blob(100, long, "StubRoutines (2)", 0, 128, long<<worldLog2-w.l.code.blockSize)
		next := w.blob(42, 3, "vtable chunks", 0, 112, 200)
		for _, c := range []struct {
			name string
			pc   uint64
			want uint64
			kind BlobKind
			err  error
		}{
			{"begin", stub + 100, stub, RuntimeStub, nil},
			{"return address behind the last instruction, in the next block", stub + 256 - w.l.code.blockSize, stub, RuntimeStub,
				nil},
			{"in the header of the next block", stub + 257 - w.l.code.blockSize, 0, 0, ErrNoBlob},
			{"next", next + 112, next, VtableStub, nil},
			{"in its data", next + 201, 0, 0, ErrNoBlob},
			{"last segment of a long block", big + long<<worldLog2 - 20, big, StubRoutines, nil},
			{"middle of a long block", big + 300<<worldLog2, big, StubRoutines, nil},
			{"free segment", worldLow + 50<<worldLog2, 0, 0, ErrNoBlob},
			{"not committed", worldHigh + 4096, 0, 0, ErrNoBlob},
			{"at the end of the heap", worldEnd, 0, 0, ErrNoBlob},
			{"elsewhere", 0x1234, 0, 0, ErrNoBlob},
			{"top of the address space", ^uint64(0), 0, 0, ErrNoBlob},
		} {
			for range 2 { // with cold caches, then with warm ones
				b, err := w.vm.Blob(c.pc)
				if !errors.Is(err, c.err) || (b == nil) != (c.want == 0) || b != nil && (b.Addr != c.want || b.Kind != c.kind) {
					t.Errorf("%s: %+v %v", c.name, b, err)
				}
			}
		}
	})
}

func TestHeapGrows(t *testing.T) {
	w := newWorld(t, loadTables(t)[9])
	seg := uint64(worldHigh-worldLow) >> worldLog2
	pc := uint64(worldHigh + 300)
	if _, err := w.vm.Blob(pc); !errors.Is(err, ErrNoBlob) {
		t.Fatalf("before: %v", err)
	}
	w.blob(seg, 8, "SafepointBlob", 84, 256, 512)
	w.put64(worldHeap+uint64(w.l.code.memory)+uint64(w.l.code.high), worldHigh+4096)
	b, err := w.vm.Blob(pc)
	if err != nil || b.Kind != Safepoint {
		t.Fatalf("after: %+v %v", b, err)
	}
}

func TestHostileBlobs(t *testing.T) {
	type harm struct {
		name string
		do   func(w *world, at uint64)
		want error
	}
	for _, c := range []harm{
		{"segment map goes back before the heap", func(w *world, at uint64) { w.put(worldSegmap+4, 200) }, ErrBadBlob},
		{"segment map leads into free space", func(w *world, at uint64) { w.put(worldSegmap+4, 1) }, ErrBadBlob},
		{"block not in use", func(w *world, at uint64) { w.put(at-w.l.code.blockSize+uint64(w.l.code.blockUsed), 0) },
			ErrNoBlob},
		{"block reaches beyond the heap", func(w *world,
			at uint64) {
			w.putSized(at-w.l.code.blockSize, w.l.code.blockLength, 1<<20)
		}, ErrBadBlob},
		{"blob larger than its block", func(w *world, at uint64) { w.put32(at+uint64(w.l.blob.length), 1<<20) }, ErrBadBlob},
		{"blob without a name", func(w *world, at uint64) { w.put64(at+uint64(w.l.blob.name), 0) }, ErrBadBlob},
		{"huge frame", func(w *world, at uint64) { w.put32(at+uint64(w.l.blob.frameSize), 1<<30) }, ErrBadBlob},
		{"no method", func(w *world, at uint64) { w.put64(at+uint64(w.l.nm.method), 0) }, ErrBadBlob},
		{"not a method", func(w *world, at uint64) { w.put64(at+uint64(w.l.nm.method), worldData+1) }, ErrBadMethod},
		{"negative compile id", func(w *world, at uint64) { w.put32(at+uint64(w.l.nm.compileID), 1<<31) }, ErrBadBlob},
		{"PcDescs out of bounds", func(w *world, at uint64) { w.put32(at+uint64(w.l.nm.scopesPCs), 0x7ffffff0) }, ErrBadBlob},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachWorld(t, func(t *testing.T, w *world) {
				at := sample(w)
				c.do(w, at)
				if b, err := w.vm.Blob(at + nmCodeAt + 32); !errors.Is(err, c.want) {
					t.Errorf("%+v %v, want %v", b, err, c.want)
				}
			})
		})
	}
}

// TestBlobReplacedWhileRead: the compile id changes between the first and the last read of a blob.
func TestBlobReplacedWhileRead(t *testing.T) {
	w := newWorld(t, loadTables(t)[9])
	at := sample(w)
	head := at - w.l.code.blockSize
	seen := 0
	w.onRead = func(addr uint64) {
		if addr == head {
			if seen++; seen == 2 {
				w.put32(at+uint64(w.l.nm.compileID), 78)
			}
		}
	}
	if b, err := w.vm.Blob(at + nmCodeAt + 32); !errors.Is(err, ErrChanged) {
		t.Fatalf("%+v %v, want ErrChanged", b, err)
	}
	w.onRead = nil
	if b, err := w.vm.Blob(at + nmCodeAt + 32); err != nil || b.CompileID != 78 {
		t.Fatalf("afterwards: %+v %v", b, err)
	}
}

func TestBadScopes(t *testing.T) {
	owner := make([]byte, 16)
	for _, c := range []struct {
		name   string
		scopes []byte
		offset int32
	}{
		{"outside", []byte{0}, 5},
		{"negative", []byte{0}, -4},
		{"cut", []byte{9, 0, 1}, 1},
		{"no method", []byte{9, 0, 0, 1}, 1},
		{"method 3 of 2", []byte{9, 0, 3, 1}, 1},
		{"is its own sender", []byte{9, 1, 1, 1}, 1},
		{"two are each other's sender", []byte{9, 4, 1, 1, 1, 1, 1}, 1},
		{"huge bci", append([]byte{9, 0, 1}, appendU5(nil, 1<<20, 0)...), 1},
	} {
		d := debugInfo{scopes: c.scopes, metadata: owner}
		if got, err := d.decode(nil, c.offset, 0); !errors.Is(err, ErrBadDebugInfo) {
			t.Errorf("%s: %v %v", c.name, got, err)
		}
	}
}
