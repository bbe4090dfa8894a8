package process

import (
	"bytes"
	"crypto/rand"
	"debug/elf"
	"runtime"
	"testing"
	"time"
	"unsafe"
)

// Equal pieces are kept once, different pieces separately. A piece that no process uses is not kept.
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

// A piece is used again and again, each time after no process uses it any more. Nothing of it is left behind.
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

// fileOf is a file that records the size of its largest read.
type fileOf struct {
	b    []byte
	most int
}

func (f *fileOf) ReadAt(b []byte, off int64) (int, error) {
	f.most = max(f.most, len(b))
	return bytes.NewReader(f.b).ReadAt(b, off)
}

// A piece that some process uses is compared, and not read as a whole. A file that only looks the same gets pieces of
// its own.
func TestKnownPiecesAreCompared(t *testing.T) {
	p := newPieces()
	const size = 4 * comparePiece
	at := filePlace{file: size + 10, off: 10, size: size}
	file := func(last byte) *fileOf {
		b := bytes.Repeat([]byte{1}, size+10)
		b[len(b)-1] = last
		return &fileOf{b: b}
	}
	first, had, err := p.read(file(1), at)
	if err != nil || had {
		t.Fatalf("had %v, %v", had, err)
	}
	again := file(1)
	second, had, err := p.read(again, at)
	if err != nil || !had || unsafe.SliceData(first) != unsafe.SliceData(second) {
		t.Errorf("an equal piece is another one: had %v, %v", had, err)
	}
	if again.most > comparePiece {
		t.Errorf("%d bytes were read at once", again.most)
	}
	for last := byte(2); last < 10; last++ {
		other, had, err := p.read(file(last), at)
		if err != nil || had || other[size-1] != last {
			t.Errorf("a piece became another one: had %v, %v", had, err)
		}
	}
	if n := len(p.places[at]); n > mostAlike {
		t.Errorf("%d pieces of one place are looked at", n)
	}
	if _, _, err := p.read(&fileOf{b: first[:100]}, at); err == nil {
		t.Error("a file that is too short was read")
	}
	runtime.KeepAlive(first)
}

// Equal tables are sorted once, if the same addresses are code in both files.
func TestOrdersAreShared(t *testing.T) {
	p := newPieces()
	raw, names := make([]byte, sharedFrom), make([]byte, sharedFrom)
	sorts := 0
	sort := func() []uint32 { sorts++; return []uint32{uint32(sorts)} }
	progs := []elf.Prog64{{Vaddr: 1}}
	first := p.order(raw, names, progs, sort)
	if second := p.order(raw, names, []elf.Prog64{{Vaddr: 1}}, sort); second != first || sorts != 1 {
		t.Errorf("sorted %d times", sorts)
	}
	if other := p.order(raw, names, []elf.Prog64{{Vaddr: 2}}, sort); other == first || sorts != 2 {
		t.Error("other code has the same order")
	}
	if other := p.order(bytes.Clone(raw), names, progs, sort); other == first || sorts != 3 {
		t.Error("another table has the same order")
	}
	runtime.KeepAlive(first)
}

// The most recently used pieces are kept, within the bound.
func TestRecentPiecesAreKept(t *testing.T) {
	r := recent{most: 10}
	a, b, c, large := new(byte), new(byte), new(byte), new(byte)
	r.use(a, 4)
	r.use(b, 4)
	r.use(a, 4)
	r.use(large, 11)
	r.use(c, 4)
	if r.size != 8 || len(r.kept) != 2 || r.kept[0].what != any(a) || r.kept[1].what != any(c) {
		t.Errorf("%d bytes are kept in %d pieces", r.size, len(r.kept))
	}
	r.most = 0
	r.trim()
	if r.size != 0 || len(r.kept) != 0 {
		t.Errorf("%d bytes are kept within no bound", r.size)
	}
}

// A process pays only a part of the price for a piece that another process has read.
func TestSharedPiecesArePaidInPart(t *testing.T) {
	const size = 1 << 20
	budget := &readBudget{left: 4 * size}
	content := make([]byte, size)
	rand.Read(content) // no process has this content
	f := &elfFile{r: &fileOf{b: content}, size: size, budget: budget}
	first, err := f.bytes(0, size)
	if err != nil || budget.spent != size {
		t.Fatalf("%d spent, %v", budget.spent, err)
	}
	if _, err := f.bytes(0, size); err != nil || budget.spent != size+size/sharedPart {
		t.Errorf("%d spent, %v", budget.spent, err)
	}
	runtime.KeepAlive(first)
}

// TestTablesOfManyJVMs: the tables and orders for a thousand JVMs with one libjvm fit into the budget. A process whose
// tables do not fit gets none, and goprof knows that.
func TestTablesOfManyJVMs(t *testing.T) {
	const jvms, symbols, names = 1000, 4096, 64 << 10 // Temurin 25.s libjvm has some 8 MB in all
	content := make([]byte, symbols*symSize+names)
	rand.Read(content) // no process has this content
	size := uint64(len(content))
	all := &readBudget{left: maxTables * size / (8 << 20)}
	read := func(progs ...elf.Prog64) *symtab {
		f := &elfFile{r: &fileOf{b: content}, size: size, budget: &readBudget{left: 2 * size, from: all}, progs: progs}
		f.sections = []elfSection{
			{name: ".symtab", Section64: elf.Section64{Size: symbols * symSize, Entsize: symSize, Link: 1}},
			{name: ".strtab", Section64: elf.Section64{Off: symbols * symSize, Size: names}},
		}
		table := f.readSymtab(".symtab")
		if table != nil {
			table.sort(f)
		}
		return table
	}
	kept := []*symtab{read()}
	for i := 1; i < jvms; i++ {
		if read() == nil {
			t.Fatalf("JVM %d has no symbols", i+1)
		}
	}
	before := all.spent
	if read(elf.Prog64{Filesz: 1}); all.spent-before < symbols*orderSize {
		t.Errorf("%d bytes are paid for an order of its own", all.spent-before)
	}
	if all.left = size; all.wasShort(time.Now()) {
		t.Error("it is said that some had no room")
	}
	for i := 0; read() != nil; i++ {
		if i > 2*sharedPart {
			t.Fatal("there is no bound")
		}
	}
	if !all.wasShort(time.Now()) {
		t.Error("it is not said that one had no room")
	}
	if all.wasShort(time.Now().Add(2 * shortFor)) {
		t.Error("it is still said")
	}
	runtime.KeepAlive(kept)
}

// TestFewPiecesArePaidInPart: the process that paid the full price of a piece may end while others still use the piece.
// So there is a bound.
func TestFewPiecesArePaidInPart(t *testing.T) {
	p := newPieces()
	most, more := make([]byte, maxCheap), make([]byte, sharedFrom)
	for range 2 { // the second call does not count again
		if !p.isCheap(most) {
			t.Error("less than the bound is paid in part")
		}
	}
	if p.isCheap(more) {
		t.Error("more than the bound is paid in part")
	}
	runtime.KeepAlive(most)
	most = nil
	runtime.GC()
	if !p.isCheap(more) {
		t.Error("what nobody has any more still counts")
	}
}
