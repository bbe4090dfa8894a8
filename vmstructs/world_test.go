package vmstructs

import (
	"strings"
	"testing"
)

// world is a tiny JVM of literal bytes, with the layout of a real JVM's tables. It has a code heap of 1 MB with
// 128-byte segments, of which 256 KB are committed, and some metadata.
type world struct {
	*fakeTarget
	t    testing.TB
	l    *layout
	vm   *VM
	next uint64 // the next address for alloc
}

const (
	worldLow    = 0x7f1000000000
	worldHigh   = worldLow + 256<<10
	worldEnd    = worldLow + 1<<20
	worldSegmap = 0x7f2000000000
	worldHeap   = 0x7f3000000000
	worldData   = 0x7f4000000000
	worldLog2   = 7
)

// newWorld builds the JVM with an empty code cache.
func newWorld(t testing.TB, j jdkTables) *world {
	t.Helper()
	l, r := resolve(j.tab)
	if lost := r.report(); len(lost) > 0 {
		t.Fatal(lost)
	}
	l.method.unsigned5X = excludedByte(j.major(t), l.method.fieldStream.ok())
	w := &world{fakeTarget: newFake(), t: t, l: l, next: worldData}
	c := &l.code
	memory, segmap := worldHeap+uint64(c.memory), worldHeap+uint64(c.segmap)
	w.put64(memory+uint64(c.low), worldLow)
	w.put64(memory+uint64(c.high), worldHigh)
	w.put64(memory+uint64(c.highBoundary), worldEnd)
	w.put64(segmap+uint64(c.low), worldSegmap)
	w.put32(worldHeap+uint64(c.log2Segment), worldLog2)
	if c.heaps != 0 {
		array, data := w.alloc(64), w.alloc(64)
		w.put64(c.heaps, array)
		w.put32(array+uint64(c.arrayLen), 1)
		w.put64(array+uint64(c.arrayData), data)
		w.put64(data, worldHeap)
		w.put64(c.lowBound, worldLow)
		w.put64(c.highBound, worldEnd)
	} else {
		w.put64(c.heap, worldHeap)
	}
	for s := uint64(0); s < (worldEnd-worldLow)>>worldLog2; s++ {
		w.put(worldSegmap+s, segmentFree)
	}
	for a := uint64(worldLow); a < worldHigh; a += pageSize {
		w.put(a, 0)
	}
	w.vm = newVM(w, l)
	if err := w.vm.openCodeCache(); err != nil {
		t.Fatal(err)
	}
	return w
}

// eachWorld runs a test with the layout of every JDK in the tables.
func eachWorld(t *testing.T, test func(t *testing.T, w *world)) {
	for _, j := range loadTables(t) {
		t.Run(j.name, func(t *testing.T) { test(t, newWorld(t, j)) })
	}
}

// alloc returns n bytes of memory, all zero, followed by as many other bytes.
func (w *world) alloc(n int) uint64 {
	at := w.next
	w.next += uint64(n+31) &^ 15
	for a := at; a < w.next+512; a += 256 {
		w.put(a, 0)
	}
	return at
}

func (w *world) cstring(s string) uint64 {
	at := w.alloc(len(s) + 1)
	w.putString(at, s)
	return at
}

func (w *world) symbol(s string) uint64 {
	at := w.alloc(len(s) + 16)
	w.put16(at+uint64(w.l.method.symLength), uint16(len(s)))
	w.put(at+uint64(w.l.method.symBody), []byte(s)...)
	return at
}

// class makes a class with a constant pool of 8 entries. Entry 7 is the source file.
func (w *world) class(name, file string) (pool uint64) {
	l := &w.l.method
	pool, klass := w.alloc(int(l.poolSize)+8*8), w.alloc(1024)
	w.put64(pool+uint64(l.poolHolder), klass)
	w.put32(pool+uint64(l.poolLength), 8)
	w.put64(klass+uint64(l.klassName), w.symbol(name))
	w.entry(pool, 7, file)
	if l.poolFile.ok() {
		w.put16(pool+uint64(l.poolFile), 7)
	} else {
		w.put16(klass+uint64(l.klassFile), 7)
	}
	return pool
}

func (w *world) entry(pool uint64, i int, s string) {
	w.put64(pool+w.l.method.poolSize+8*uint64(i), w.symbol(s))
}

// method makes a method of 20 bytecodes. Its name and signature are entries i and i+1 of the pool.
func (w *world) method(pool uint64, i int, name, sig string, lines []byte) uint64 {
	l := &w.l.method
	const codeSize = 20
	words := (int(l.constSize) + codeSize + len(lines) + 7) / 8
	m, cm := w.alloc(l.span), w.alloc(8*words)
	w.put64(m+uint64(l.constMethod), cm)
	w.put64(cm+uint64(l.constants), pool)
	w.put32(cm+uint64(l.wordSize), uint32(words))
	w.put16(cm+uint64(l.codeSize), codeSize)
	w.put16(cm+uint64(l.nameIndex), uint16(i))
	w.put16(cm+uint64(l.sigIndex), uint16(i+1))
	w.entry(pool, i, name)
	w.entry(pool, i+1, sig)
	if lines != nil {
		w.put(cm+uint64(l.constFlags), l.hasLines)
		w.put(cm+l.constSize+codeSize, lines...)
	}
	return m
}

// block writes a block header for the segments [seg, seg+n), and marks these in the map.
func (w *world) block(seg, n uint64) (blob uint64) {
	at := worldLow + seg<<worldLog2
	c := &w.l.code
	w.putSized(at, c.blockLength, n)
	w.put(at+uint64(c.blockUsed), 1)
	hop := byte(0)
	for s := range n {
		w.put(worldSegmap+seg+s, hop)
		if hop++; hop == segmentFree {
			hop = 1
		}
	}
	return at + c.blockSize
}

func (w *world) free(seg, n uint64) {
	w.put(worldLow+seg<<worldLog2+uint64(w.l.code.blockUsed), 0)
	for s := range n {
		w.put(worldSegmap+seg+s, segmentFree)
	}
}

// blob writes a CodeBlob with code from +codeAt to +codeEnd.
func (w *world) blob(seg, n uint64, name string, frameSize int, codeAt, codeEnd uint64) uint64 {
	at := w.block(seg, n)
	l := &w.l.blob
	w.put64(at+uint64(l.name), w.cstring(name))
	w.put32(at+uint64(l.length), uint32(n<<worldLog2-w.l.code.blockSize))
	w.put32(at+uint64(l.frameSize), uint32(frameSize))
	w.putSized(at, l.frameComplete, uint64(0xffffffffffffffff))
	if l.codeBegin.ok() && l.codeEnd.ok() {
		w.put64(at+uint64(l.codeBegin), at+codeAt)
		w.put64(at+uint64(l.codeEnd), at+codeEnd)
	} else {
		w.put32(at+uint64(l.codeOffset), uint32(codeAt))
		w.put32(at+uint64(l.dataOffset), uint32(codeEnd))
	}
	return at
}

type fakeScope struct {
	method int // number in metadata, from 1
	bci    int
}

// The offsets of the parts of a fake nmethod.
const (
	nmSegments = 16
	nmCodeAt   = 512
	nmCodeEnd  = 1024
	nmMetaAt   = 1032
)

// nmethod writes compiled code. For each pc, it inlines the methods of the pc's stack into each other, innermost first.
// The last of methods owns the code.
func (w *world) nmethod(seg uint64, id uint32, methods []uint64, pcs map[int32][]fakeScope, order []int32) uint64 {
	at := w.blob(seg, nmSegments, "nmethod", 6, nmCodeAt, nmCodeEnd)
	l, bl := &w.l.nm, &w.l.blob
	meta := make([]byte, 0, 8*len(methods))
	for _, m := range methods {
		for i := range 8 {
			meta = append(meta, byte(m>>(8*i)))
		}
	}
	scopes, descs := []byte{255}, []byte{}
	desc := func(pc, scope int32) {
		for _, v := range []int32{pc, scope, 0, 0} {
			descs = append(descs, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		}
	}
	x := w.l.method.unsigned5X
	desc(-1, 0)
	for _, pc := range order {
		sender := uint32(0)
		stack := pcs[pc]
		for i := len(stack) - 1; i >= 0; i-- {
			here := uint32(len(scopes))
			scopes = appendU5(scopes, sender, x)
			scopes = appendU5(scopes, uint32(stack[i].method), x)
			scopes = appendU5(scopes, uint32(stack[i].bci+1), x)
			sender = here
		}
		desc(pc, int32(sender))
	}
	desc(0x7fffffff, 0)
	for len(scopes)%8 != 0 {
		scopes = append(scopes, 255)
	}
	w.put32(at+uint64(l.compileID), id)
	w.put(at+uint64(l.level), 4)
	w.put32(at+uint64(l.entryBCI), 0xffffffff)
	w.put32(at+uint64(l.origPC), 40)
	w.put64(at+uint64(l.method), methods[len(methods)-1])
	w.put32(at+uint64(l.stub), nmCodeEnd-64)
	for i := range l.deopt {
		if l.deoptPtr[i].ok() {
			w.put64(at+uint64(l.deoptPtr[i]), at+nmCodeEnd-32+uint64(i))
		} else if l.deopt[i].ok() {
			w.put32(at+uint64(l.deopt[i]), nmCodeEnd-32+uint32(i))
		}
	}
	if l.verified.ok() {
		w.put64(at+uint64(l.verified), at+nmCodeAt+16)
	} else {
		w.putSized(at, l.verifiedOff, 16)
	}
	if l.immutable.ok() {
		data, mutable := w.alloc(4096), w.alloc(4096)
		w.put64(at+uint64(l.immutable), data)
		w.put32(at+uint64(l.immutableSize), uint32(len(descs)+len(scopes)+16))
		w.put32(at+uint64(l.scopesPCs), 16)
		w.put32(at+uint64(l.scopesData), uint32(16+len(descs)))
		w.put(data+16, descs...)
		w.put(data+16+uint64(len(descs)), scopes...)
		w.put64(at+uint64(bl.mutable), mutable)
		w.put32(at+uint64(bl.relocSize), 24)
		w.put32(at+uint64(bl.mutableSize), uint32(24+len(meta)))
		w.put(mutable+24, meta...)
		return at
	}
	scopesAt := nmMetaAt + uint64(len(meta))
	pcsAt := scopesAt + uint64(len(scopes))
	w.putSized(at, l.metadata, nmMetaAt)
	w.put(at+nmMetaAt, meta...)
	w.put(at+scopesAt, scopes...)
	w.put(at+pcsAt, descs...)
	if l.scopesDataPtr.ok() {
		w.put64(at+uint64(l.scopesDataPtr), at+scopesAt)
	} else {
		w.put32(at+uint64(l.scopesData), uint32(scopesAt))
	}
	w.put32(at+uint64(l.scopesPCs), uint32(pcsAt))
	w.put32(at+uint64(l.dependencies), uint32(pcsAt)+uint32(len(descs)))
	return at
}

// tell writes scopes as "Class.method:bci:line < ...".
func tell(scopes []Scope) string {
	var s []string
	for _, sc := range scopes {
		s = append(s, sc.Method.Full()+":"+itoa(sc.BCI)+":"+itoa(sc.Line))
	}
	return strings.Join(s, " < ")
}
