package vmstructs

import (
	"errors"
	"testing"
)

// TestProofFindsWhatChanged: the memory of metadata is soon reused for other data of equal size. So a cached name is
// valid only while all parts from which it was made are unchanged.
func TestProofFindsWhatChanged(t *testing.T) {
	type change struct {
		name string
		do   func(w *world, b *Blob)
		blob bool   // the blob is also gone
		want string // the method's name afterwards
	}
	for _, c := range []change{
		{"nothing", func(w *world, b *Blob) {}, false, "app.Main.outer"},
		{"another method's number", func(w *world, b *Blob) {
			w.put16(constMethodOf(w, b.Method)+uint64(w.l.method.idnum), 99)
		}, false, "app.Main.outer"},
		{"another name index", func(w *world, b *Blob) {
			w.put16(constMethodOf(w, b.Method)+uint64(w.l.method.nameIndex), 3)
		}, false, "app.Main.inner"},
		{"another symbol in the constant pool", func(w *world, b *Blob) {
			w.put64(b.Method.facts[factNameEntry].addr, w.symbol("other"))
		}, false, "app.Main.other"},
		{"other bytes in the symbol", func(w *world, b *Blob) {
			w.put(word(b.Method.facts[factNameEntry].want)+uint64(w.l.method.symBody), 'O')
		}, false, "app.Main.Outer"},
		{"another class at the same address", func(w *world, b *Blob) {
			w.put64(b.Method.pool.facts[poolKlassName].addr, w.symbol("app/Other"))
		}, false, "app.Other.outer"},
		{"another constant pool", func(w *world, b *Blob) {
			pool := w.class("x/Y", "Y.java")
			w.entry(pool, 1, "moved")
			w.entry(pool, 2, "()V")
			w.put64(constMethodOf(w, b.Method)+uint64(w.l.method.constants), pool)
		}, false, "x.Y.moved"},
		{"another version of a class that was redefined", func(w *world, b *Blob) {
			w.put(b.Method.CodeBegin+uint64(b.Method.CodeSize)+1, 0x0f)
		}, false, "app.Main.outer"},
		{"another compile id", func(w *world, b *Blob) { w.put32(b.Addr+uint64(w.l.nm.compileID), 78) }, true,
			"app.Main.outer"},
		{"its debug information is freed, and it is not yet", func(w *world, b *Blob) {
			if w.l.nm.immutable.ok() {
				w.put64(b.Addr+uint64(w.l.nm.immutable), b.End)
			} else {
				w.put32(b.Addr+uint64(w.l.nm.compileID), 78)
			}
		}, true, "app.Main.outer"},
		{"flushed", func(w *world, b *Blob) { w.free(4, nmSegments) }, true, "app.Main.outer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachWorld(t, func(t *testing.T, w *world) {
				pc := sample(w) + nmCodeAt + 64
				b, err := w.vm.Blob(pc)
				if err != nil {
					t.Fatal(err)
				}
				m := b.Method
				p := w.vm.NewProof()
				p.Blob(b)
				p.Method(m)
				c.do(w, b)
				ok, err := p.Check()
				if want := c.name == "nothing"; ok != want || err != nil {
					t.Fatalf("the proof says %v %v", ok, err)
				}
				again, err := w.vm.Method(m.Addr)
				if err != nil || again.Full() != c.want || (again == m) != (ok || c.blob) {
					t.Errorf("method %+v %v, want %s", again, err, c.want)
				}
				if b2, err := w.vm.Blob(pc); (b2 == b) == c.blob {
					t.Errorf("blob %+v %v", b2, err)
				}
			})
		})
	}
}

// TestFreedSymbolIsNoName: the bytes that replace a freed name are not a name, whatever their length.
func TestFreedSymbolIsNoName(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		b, err := w.vm.Blob(sample(w) + nmCodeAt + 64)
		if err != nil {
			t.Fatal(err)
		}
		addr := b.Method.Addr
		name := word(b.Method.facts[factNameEntry].want) &^ 1
		for _, garbage := range [][]byte{{0}, {0xff}, {0xc3, 'x'}} {
			w.vm.methods.init()
			w.put(name+uint64(w.l.method.symBody), garbage...)
			if m, err := w.vm.Method(addr); !errors.Is(err, ErrBadMethod) {
				t.Errorf("% x: %+v %v", garbage, m, err)
			}
		}
	})
}

func constMethodOf(w *world, m *Method) uint64 { return m.CodeBegin - w.l.method.constSize }

// TestBlobsNeverTakeStaleMethods: the metadata of new code reuse the address of a method that is cached with its old
// name.
func TestBlobsNeverTakeStaleMethods(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		at := sample(w)
		b, err := w.vm.Blob(at + nmCodeAt)
		if err != nil {
			t.Fatal(err)
		}
		m := b.Method
		w.put64(m.facts[factNameEntry].addr, w.symbol("fresh"))
		second := w.nmethod(60, 78, []uint64{m.Addr}, map[int32][]fakeScope{8: {{1, 2}}}, []int32{8})
		b, err = w.vm.Blob(second + nmCodeAt)
		if err != nil || b.Method.Full() != "app.Main.fresh" {
			t.Fatalf("%+v %v", b.Method, err)
		}
	})
}

// TestAddressReuse: a segment has another blob after its first blob was freed.
func TestAddressReuse(t *testing.T) {
	w := newWorld(t, loadTables(t)[9])
	at := sample(w)
	pc := at + nmCodeAt + 32
	b, err := w.vm.Blob(pc)
	if err != nil {
		t.Fatal(err)
	}
	w.free(4, nmSegments)
	w.blob(4, 2, "vtable chunks", 0, 64, 128)
	w.blob(6, 14, "StubRoutines (2)", 0, 64, 14<<worldLog2-w.l.code.blockSize)
	p := w.vm.NewProof()
	p.Blob(b)
	if ok, err := p.Check(); ok || err != nil {
		t.Fatal(ok, err)
	}
	if b, err := w.vm.Blob(pc); err != nil || b.Kind != StubRoutines {
		t.Errorf("%+v %v", b, err)
	}
}

func TestCachesAreBounded(t *testing.T) {
	w := newWorld(t, loadTables(t)[9])
	at := sample(w)
	w.vm.blobs.bytes = maxBlobBytes
	w.vm.methods.bytes = maxMethodBytes
	if _, err := w.vm.Blob(at + nmCodeAt); err != nil {
		t.Fatal(err)
	}
	if w.vm.blobs.bytes > 1<<20 || len(w.vm.blobs.byAddr) != 1 || w.vm.methods.bytes > 1<<20 ||
		len(w.vm.methods.byAddr) != 1 {
		t.Errorf("%d bytes of %d blobs, %d bytes of %d methods", w.vm.blobs.bytes, len(w.vm.blobs.byAddr),
			w.vm.methods.bytes, len(w.vm.methods.byAddr))
	}
}

// TestProofOfManyWalks: a fact that several walks use is read once. This also holds if another Proof has noted it in
// between, for example because a method was loaded between two walks.
func TestProofOfManyWalks(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		b, err := w.vm.Blob(sample(w) + nmCodeAt + 64)
		if err != nil {
			t.Fatal(err)
		}
		m := b.Method
		p := w.vm.NewProof()
		p.Method(m)
		once := len(p.facts)
		p.End()
		p.Method(m)
		if p.End(); len(p.facts) != once || len(p.methods) != 2 {
			t.Errorf("%d facts for one walk and %d for two, %d methods", once, len(p.facts), len(p.methods))
		}
		p.Reset()
		if ok, err := w.vm.proveMethod(m); !ok || err != nil {
			t.Fatalf("nothing has changed: %v, %v", ok, err)
		}
		p.Method(m)
		w.put16(constMethodOf(w, m)+uint64(w.l.method.idnum), 99)
		if ok, _ := p.Check(); ok {
			t.Error("a method that another Proof has noted, too, is not read")
		}
	})
}
