package vmstructs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"goprof/process"
)

// The addresses of these tests' chunks, and their form: wide references and class pointers, no collector's colours, and
// a possible layout of the fields.
const (
	chunkKlass = 0x7f0000001000
	contKlass  = 0x7f0000002000
	chunkAt    = 0x7e0000000000
	contAt     = 0x7d0000000000
	chunkStart = 48
)

// chunkWorld is a reader of continuations over a heap of literal bytes.
type chunkWorld struct {
	*fakeTarget
	*Continuations
}

func newChunkWorld(t *testing.T) chunkWorld {
	f := newFake()
	c := &Continuations{vm: newVM(f, &layout{}), ready: true, mask: ^uint64(0), classes: map[uint64]*javaClass{}}
	c.chunk = chunkFields{klass: chunkKlass, start: chunkStart, parent: 16, size: 24, sp: 28, bottom: 32}
	c.cont = contFields{klass: contKlass, tail: 16, span: 24}
	f.put64(contAt, 1)
	f.put64(contAt+8, contKlass)
	f.put64(contAt+16, chunkAt)
	w := chunkWorld{f, c}
	w.putChunk(chunkAt, 0, 100, 40, 98)
	return w
}

func (w chunkWorld) putChunk(at, parent uint64, size, sp, bottom int32) {
	w.put64(at, 1)
	w.put64(at+8, chunkKlass)
	w.put64(at+16, parent)
	w.put32(at+24, uint32(size))
	w.put32(at+28, uint32(sp))
	w.put32(at+32, uint32(bottom))
	for i := range uint64(100) {
		w.put64(at+chunkStart+i*8, at+i)
	}
}

func TestChunks(t *testing.T) {
	w := newChunkWorld(t)
	w.putChunk(chunkAt, chunkAt+0x1000, 100, 100, 98) // empty, but kept for the next freeze
	w.putChunk(chunkAt+0x1000, chunkAt+0x2000, 100, 40, 98)
	w.putChunk(chunkAt+0x2000, 0, 100, 90, 100)
	var k process.Continuation
	if err := w.readChunks(contAt, &k); err != nil || !w.unchanged() {
		t.Fatal(err)
	}
	if len(k.Chunks) != 2 {
		t.Fatalf("%d chunks", len(k.Chunks))
	}
	first := &k.Chunks[0]
	if first.SP != chunkAt+0x1000+chunkStart+40*8 || first.End() != chunkAt+0x1000+chunkStart+98*8 ||
		binary.LittleEndian.Uint64(first.Stack) != chunkAt+0x1000+38 {
		t.Errorf("sp %#x, end %#x, %x", first.SP, first.End(), first.Stack[:8])
	}
	n := testing.AllocsPerRun(10, func() {
		k.Reset()
		if w.readChunks(contAt, &k) != nil || !w.unchanged() {
			t.Fatal("changed")
		}
	})
	if n > 0 {
		t.Errorf("%.1f allocations", n)
	}
}

// TestHostileChunks: for any heap, goprof reads few bytes. Contradictory chunks are an error.
func TestHostileChunks(t *testing.T) {
	cases := map[string]func(w chunkWorld){
		"a chunk is its own parent":     func(w chunkWorld) { w.put64(chunkAt+16, chunkAt) },
		"sp is above the size":          func(w chunkWorld) { w.putChunk(chunkAt, 0, 100, 101, 98) },
		"sp is negative":                func(w chunkWorld) { w.putChunk(chunkAt, 0, 100, -1, 98) },
		"no room for the words below":   func(w chunkWorld) { w.putChunk(chunkAt, 0, 100, 1, 98) },
		"bottom is above the size":      func(w chunkWorld) { w.putChunk(chunkAt, 0, 100, 40, 101) },
		"bottom is negative":            func(w chunkWorld) { w.putChunk(chunkAt, 0, 100, 40, -8) },
		"a size of gigabytes":           func(w chunkWorld) { w.putChunk(chunkAt, 0, 1<<30, 2, 1<<30) },
		"a size of negative bytes":      func(w chunkWorld) { w.putChunk(chunkAt, 0, -100, -100, -100) },
		"megabytes more than are there": func(w chunkWorld) { w.putChunk(chunkAt, 0, 400_000, 2, 400_000) },
		"the chunk is of another class": func(w chunkWorld) { w.put64(chunkAt+8, contKlass) },
		"the chunk was moved":           func(w chunkWorld) { w.put64(chunkAt, 0x7c0000000003) },
		"the chunk has an odd address":  func(w chunkWorld) { w.put64(contAt+16, chunkAt+4) },
		"the chunk is nowhere":          func(w chunkWorld) { w.put64(contAt+16, 0x1000) },
		"the owner is of another class": func(w chunkWorld) { w.put64(contAt+8, chunkKlass+8) },
		"a parent chain of new chunks": func(w chunkWorld) {
			for i := uint64(0); i < 200; i++ {
				w.putChunk(chunkAt+i*0x1000, chunkAt+(i+1)*0x1000, 100, 100, 98)
			}
		},
	}
	for name, change := range cases {
		w := newChunkWorld(t)
		change(w)
		var k process.Continuation
		if err := w.readChunks(contAt, &k); err == nil {
			t.Errorf("%s: no error, %d chunks", name, len(k.Chunks))
		}
		if w.reads > 1000 {
			t.Errorf("%s: %d reads", name, w.reads)
		}
	}
}

// TestChunksThatChange: a running thread changes memory that was read already.
func TestChunksThatChange(t *testing.T) {
	cases := map[string]func(w chunkWorld){
		"a frame came back":          func(w chunkWorld) { w.put32(chunkAt+28, 48) },
		"all was frozen again":       func(w chunkWorld) { w.put32(chunkAt+28, 8) },
		"another chunk is the last":  func(w chunkWorld) { w.put64(contAt+16, chunkAt+0x4000) },
		"the chunk has gone":         func(w chunkWorld) { w.put64(chunkAt+8, contKlass) },
		"the chunk is mapped nomore": func(w chunkWorld) { delete(w.pages, chunkAt/pageSize) },
		"its bottom has other words": func(w chunkWorld) { w.put32(chunkAt+32, 97) },
	}
	for name, change := range cases {
		w := newChunkWorld(t)
		var k process.Continuation
		if err := w.readChunks(contAt, &k); err != nil {
			t.Fatal(err)
		}
		change(w)
		if w.unchanged() {
			t.Errorf("%s: not noticed", name)
		}
	}
}

// TestHostileChunkFields: a wide reference does not fit into the field of a narrow one.
func TestHostileChunkFields(t *testing.T) {
	w := newChunkWorld(t)
	for _, narrow := range []bool{false, true} {
		w.vm.java.heap.narrow = narrow
		w.chunk = chunkFields{}
		w.classes[chunkKlass] = &javaClass{names: []string{"jdk/internal/vm/StackChunk"}, size: chunkHeadBytes,
			fields: map[string]uint64{"parent": chunkHeadBytes - 4, "size": 24, "sp": 28, "bottom": 32}}
		var k process.Continuation
		left := maxChunkBytes
		_, err := w.readChunk(chunkAt, &w.heads[0], &k, &left)
		if fits := err == nil; fits != narrow {
			t.Errorf("narrow references %v: %v", narrow, err)
		}
	}
}

// TestTablesWithoutEnd: each table of a set leads to the next one, and there are far more tables than in any program.
func TestTablesWithoutEnd(t *testing.T) {
	w := newChunkWorld(t)
	const nodeKlass, tables, nodes, step = 0x7f0000003000, 0x7c0000000000, 0x7b0000000000, 64
	w.vm.java.heap.arrayLength, w.vm.java.heap.arrayData = 16, 24
	w.classes[nodeKlass] = &javaClass{names: []string{"java/lang/Object"}, size: 24,
		fields: map[string]uint64{"nextTable": 16}}
	for i := range uint64(2 * maxNested) {
		w.put64(tables+i*step+8, nodeKlass+8) // of arrays of nodes
		w.put32(tables+i*step+16, 1)
		w.put64(tables+i*step+24, nodes+i*step)
		w.put64(nodes+i*step, 1)
		w.put64(nodes+i*step+8, nodeKlass)
		w.put64(nodes+i*step+16, tables+(i+1)*step)
	}
	s := search{c: w.Continuations, seen: map[uint64]bool{}}
	if err := s.tableOf(tables, func(uint64) {}); err != nil || len(s.census.Failed) != 1 {
		t.Errorf("%v; %v", err, s.census.Failed)
	}
	if len(s.seen) > maxNested+1 || s.depth != 0 {
		t.Errorf("%d tables, depth %d in the end", len(s.seen), s.depth)
	}
}

// TestTableThatMoves: a collector moves a table during the reading. The elements that were read do not count as
// complete.
func TestTableThatMoves(t *testing.T) {
	w := newChunkWorld(t)
	const nodeKlass, table, node, threadAt = 0x7f0000003000, 0x7c0000000000, 0x7b0000000000, 0x7a0000000000
	w.vm.java.heap.arrayLength, w.vm.java.heap.arrayData = 16, 24
	w.classes[nodeKlass] = &javaClass{names: []string{"java/lang/Object"}, size: 32,
		fields: map[string]uint64{"key": 16, "next": 24}}
	w.put64(table, 1)
	w.put64(table+8, nodeKlass+8)
	w.put32(table+16, 1)
	w.put64(table+24, node)
	w.put64(node, 1)
	w.put64(node+8, nodeKlass)
	w.put64(node+16, threadAt)
	w.put64(node+24, 0)
	for _, moves := range []bool{false, true} {
		s, seen := search{c: w.Continuations, seen: map[uint64]bool{}}, 0
		err := s.tableOf(table, func(obj uint64) {
			if seen++; obj != threadAt {
				t.Errorf("%#x", obj)
			}
			if moves {
				w.put64(table, node|3)
			}
		})
		if seen != 1 || (err != nil) != moves {
			t.Errorf("it moves %v: %d seen, %v", moves, seen, err)
		}
	}
}

// TestNodeThatMoves: a collector moves a node away. The new contents of its memory are not mistaken for the node's
// fields, and the result reports that.
func TestNodeThatMoves(t *testing.T) {
	w := newChunkWorld(t)
	const nodeKlass, other, node = 0x7f0000003000, 0x7f0000004000, 0x7b0000000000
	w.classes[nodeKlass] = &javaClass{names: []string{"java/lang/Object"}, size: 32,
		fields: map[string]uint64{"key": 16, "next": 24}}
	for _, now := range []struct{ mark, klass uint64 }{{1, other}, {0x7c0000000003, nodeKlass}, {0, 0}} {
		w.onRead = nil
		w.put64(node, 1)
		w.put64(node+8, nodeKlass)
		w.put64(node+16, 0x7a0000000000)
		w.put64(node+24, 0)
		reads := 0
		w.onRead = func(addr uint64) {
			if reads++; addr == node && reads == 2 {
				w.put64(node, now.mark)
				w.put64(node+8, now.klass)
			}
		}
		s := search{c: w.Continuations, seen: map[uint64]bool{}}
		err := s.bin(node, func(uint64) error { return nil }, func(obj uint64) { t.Errorf("%#x", obj) })
		if !errors.Is(err, ErrMoved) || reads != 2 {
			t.Errorf("%+v: %v after %d reads", now, err, reads)
		}
	}
}

// TestVastTables: many empty but large tables do not delay the search for long.
func TestVastTables(t *testing.T) {
	w := newChunkWorld(t)
	w.vm.java.heap.arrayLength, w.vm.java.heap.arrayData = 16, 24
	const tables = 0x7c0000000000
	s := search{c: w.Continuations, seen: map[uint64]bool{}, slots: maxSlots - 100}
	for i := range uint64(20) {
		at := tables + i*0x1000
		w.put64(at, 1)
		w.put64(at+8, chunkKlass)
		w.put32(at+16, 10)
		for k := range uint64(10) {
			w.put64(at+24+k*8, 0)
		}
		if err := s.tableOf(at, func(uint64) {}); (err == nil) != (i < 10) {
			t.Errorf("table %d: %v", i, err)
		}
	}
}

// TestUnknownState: a thread in an unknown state may be running on a carrier. Then its frames in the heap are not its
// whole stack.
func TestUnknownState(t *testing.T) {
	w := newChunkWorld(t)
	s := search{c: w.Continuations, states: map[uint32]virtualState{5: {name: virtualParked}}, suspended: 1 << 8}
	if got, err := s.stateOf(5 | 1<<8); got.name != virtualParked || err != nil {
		t.Errorf("%v %v", got, err)
	}
	if got, err := s.stateOf(7); err == nil {
		t.Errorf("%v", got)
	}
}

// TestReasonsAreCounted: each failure is counted, however many different ones there are.
func TestReasonsAreCounted(t *testing.T) {
	var c Census
	for i := range 1000 {
		c.fail(fmt.Errorf("at %d", i))
		c.fail(ErrMoved)
	}
	n := 0
	for _, k := range c.Failed {
		n += k
	}
	if n != 2000 || c.Failed["object is being moved"] != 1000 || len(c.Failed) > maxReasons+1 {
		t.Errorf("%d counted, by %d reasons", n, len(c.Failed))
	}
}

// TestCopiedChunks: if chunks were copied with the stack, only the copies are used. A missing chunk is not read from
// memory, which may have changed since.
func TestCopiedChunks(t *testing.T) {
	w := newChunkWorld(t)
	copies := process.Pieces{}
	add := func(addr uint64, size int) {
		b := make([]byte, size)
		if err := w.vm.mem.Bytes(addr, b); err != nil {
			t.Fatal(err)
		}
		copies.List = append(copies.List, process.Piece{Addr: addr, Size: size})
		copies.Bytes = append(copies.Bytes, b...)
	}
	add(contAt, 24)
	add(chunkAt, chunkStart)
	read := func() (k process.Continuation, err error) {
		w.copied = &copies
		defer func() { w.copied = nil }()
		return k, w.readChunks(contAt, &k)
	}
	if _, err := read(); !errors.Is(err, ErrChunk) {
		t.Errorf("without its frames: %v", err)
	}
	add(chunkAt+chunkStart+38*8, 60*8)
	w.putChunk(chunkAt, 0, 100, 98, 98) // the thread has continued
	w.put64(contAt+16, 0)
	k, err := read()
	if err != nil || len(k.Chunks) != 1 || k.Chunks[0].SP != chunkAt+chunkStart+40*8 || len(k.Chunks[0].Stack) != 60*8 {
		t.Errorf("%v, %d chunks", err, len(k.Chunks))
	}
}
