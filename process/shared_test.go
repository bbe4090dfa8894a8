package process

import (
	"bytes"
	"runtime"
	"testing"
	"unsafe"
)

// Equal pieces are one, others are not, and what nobody has is not kept.
func TestPiecesAreShared(t *testing.T) {
	p := newPieces()
	p.sweep = 1
	make := func(with byte, size int) []byte { return bytes.Repeat([]byte{with}, size) }
	a := p.one(make(1, sharedFrom))
	if b := p.one(make(1, sharedFrom)); unsafe.SliceData(a) != unsafe.SliceData(b) {
		t.Error("two copies are kept of one content")
	}
	for _, other := range [][]byte{make(2, sharedFrom), make(1, sharedFrom+1)} {
		if got := p.one(bytes.Clone(other)); !bytes.Equal(got, other) {
			t.Error("a piece became another one")
		}
	}
	if small := make(1, 8); unsafe.SliceData(p.one(small)) != unsafe.SliceData(small) || len(p.known) > 3 {
		t.Error("a small piece is kept")
	}
	runtime.KeepAlive(a)
	for range 3 { // until weak pointers are empty
		runtime.GC()
	}
	p.mu.Lock()
	p.forget()
	p.mu.Unlock()
	if len(p.known) != 0 {
		t.Errorf("%d pieces are kept that nobody has", len(p.known))
	}
}

// A piece that comes again and again, each time when nobody has it any more, leaves nothing behind.
func TestPieceComesAgain(t *testing.T) {
	p := newPieces()
	for range 4 {
		p.one(bytes.Repeat([]byte{1}, sharedFrom))
		for range 3 {
			runtime.GC()
		}
	}
	for _, all := range p.known {
		if len(all) != 1 {
			t.Errorf("%d are kept of one content", len(all))
		}
	}
}
