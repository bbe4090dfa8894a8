package vmstructs

import (
	"errors"
	"testing"

	"goprof/process"
)

// countedMemory has a byte for each address below its end, and counts reads.
type countedMemory struct {
	process.Memory
	end   uint64
	reads int
}

func (m *countedMemory) Read(addr uint64, p []byte) error {
	m.reads++
	if addr+uint64(len(p)) > m.end {
		return errors.New("behind the end")
	}
	for i := range p {
		p[i] = byte((addr + uint64(i)) * 7 >> 3)
	}
	return nil
}

// ReadMany counts as one read.
func (m *countedMemory) ReadMany(rs []process.Range) {
	reads := m.reads
	for i := range rs {
		rs[i].OK = m.Read(rs[i].Addr, rs[i].Buf) == nil
	}
	m.reads = reads + 1
}

// TestNearFetch: the wanted pieces are read with one call, once. Missing memory does no harm.
func TestNearFetch(t *testing.T) {
	m := &countedMemory{end: 100 * nearPiece}
	near := &nearMemory{Memory: m}
	near.begin()
	defer near.end()
	for _, addr := range []uint64{0, 8, 64, 3*nearPiece + 8, 100 * nearPiece, 7 * nearPiece} {
		near.want(addr)
	}
	near.fetch()
	near.fetch()
	if m.reads != 1 {
		t.Errorf("%d reads", m.reads)
	}
	for _, r := range []struct {
		addr  uint64
		reads int
	}{{16, 0}, {3 * nearPiece, 0}, {7*nearPiece + 100, 0}, {4 * nearPiece, 1}} {
		m.reads = 0
		var got, want [16]byte
		if err := near.Read(r.addr, got[:]); err != nil || m.reads != r.reads {
			t.Errorf("at %#x: %d reads, not %d (%v)", r.addr, m.reads, r.reads, err)
		}
		if m.Read(r.addr, want[:]); got != want {
			t.Errorf("at %#x: %x, not %x", r.addr, got, want)
		}
	}
	if near.Read(100*nearPiece, make([]byte, 1)) == nil {
		t.Error("memory that is not there was read")
	}
}

// TestNear: a piece is read once for one question. The bytes of an incomplete piece at the end of memory are read when
// they are needed.
func TestNear(t *testing.T) {
	m := &countedMemory{end: 100*nearPiece + 100}
	near := &nearMemory{Memory: m}
	ask := func(addr uint64, reads int) {
		t.Helper()
		m.reads = 0
		var got, want [16]byte
		if err := near.Read(addr, got[:]); err != nil || m.reads != reads {
			t.Errorf("at %#x: %d reads, not %d (%v)", addr, m.reads, reads, err)
		}
		if m.Read(addr, want[:]); got != want {
			t.Errorf("at %#x: %x, not %x", addr, got, want)
		}
	}
	ask(8, 1)
	near.begin()
	ask(8, 1)
	ask(64, 0)
	ask(nearPiece-8, 1) // its second half is in the next piece
	ask(nearPiece+8, 0)
	ask(100*nearPiece+8, 2) // that piece is incomplete
	near.begin()
	near.end()
	ask(8, 0)
	near.forget()
	ask(8, 1)
	for i := range uint64(nearPieces) { // the first one is dropped
		ask(nearPiece*(i+1)+8, 1)
	}
	ask(nearPiece*nearPieces+8, 0)
	ask(8, 1)
	near.end()
	ask(64, 1)
	if near.begin(); near.Read(m.end, make([]byte, 1)) == nil {
		t.Error("memory that is not there was read")
	}
}

// TestNearIsOld: if pieces are older than a method, its bytecodes and whether it is intrinsic are still right. Memory
// that could not be read as a method is read again.
func TestNearIsOld(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		l := &w.l.method
		addr := w.method(w.class("app/Main", "Main.java"), 1, "name", "()V", nil)
		body, err := w.vm.mem.U64(addr + uint64(l.constMethod))
		if err != nil {
			t.Fatal(err)
		}
		intrinsic := addr + uint64(w.l.invoke.intrinsic.offset)
		w.put(intrinsic, 0)
		w.put64(addr+uint64(l.constMethod), 0)
		w.vm.BeginQuestion()
		defer w.vm.EndQuestion()
		if m, err := w.vm.Method(addr); err == nil {
			t.Fatalf("a method without a body: %+v", m)
		}
		w.put64(addr+uint64(l.constMethod), body)
		w.put(intrinsic, 1)
		m, err := w.vm.Method(addr)
		if err != nil {
			t.Fatal("it is not read anew:", err)
		}
		w.put(m.CodeBegin, 0xb1)
		code, err := w.vm.Bytecodes(m)
		if err != nil || code[0].Op != 0xb1 {
			t.Errorf("%+v %v", code, err)
		}
		if !m.Intrinsic {
			t.Error("it was not intrinsic before")
		}
	})
}

// TestKnownClassIsOld: cached data of a class is used without being read, until the proof shows that another class is
// at that address.
func TestKnownClassIsOld(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		pool := w.class("app/Before", "Before.java")
		first, second := w.method(pool, 1, "first", "()V", nil), w.method(pool, 3, "second", "()V", nil)
		if m, err := w.vm.Method(first); err != nil || m.Class != "app.Before" {
			t.Fatal(m, err)
		}
		klass, err := w.vm.mem.U64(pool + uint64(w.l.method.poolHolder))
		if err != nil {
			t.Fatal(err)
		}
		w.put64(klass+uint64(w.l.method.klassName), w.symbol("app/Now"))
		if m, err := w.vm.Method(second); err != nil || m.Class != "app.Now" {
			t.Fatal(m, err)
		}
	})
}

// TestBadMethod: memory that is not a method is read once, and its cached data is dropped.
func TestBadMethod(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		pool := w.class("app/Bad", "Bad.java")
		bad, good := w.method(pool, 1, "bad", "()V", nil), w.method(pool, 3, "good", "()V", nil)
		w.put64(bad+uint64(w.l.method.constMethod), 0)
		ask := func() int {
			reads := w.reads
			if m, err := w.vm.Method(bad); err == nil {
				t.Fatalf("%+v", m)
			}
			return w.reads - reads
		}
		once := ask()
		w.vm.BeginQuestion()
		defer w.vm.EndQuestion()
		if _, err := w.vm.Method(good); err != nil {
			t.Fatal(err)
		}
		if later := ask(); once != 1 || later != 1 {
			t.Errorf("%d reads, and %d in a question", once, later)
		}
	})
}
