//go:build linux

package ptrace

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// trailWorld is a Tracer at the beginning of a trail.
type trailWorld struct {
	*Tracer
	*ctest.Trail
}

func newTrailWorld() *trailWorld {
	d, err := newReader(4096)
	if err != nil {
		panic(err)
	}
	w := &trailWorld{&Tracer{reader: d}, ctest.NewTrail(d.side[:64], d.stack[:256])}
	w.Tracer.Trail = &w.Trail.Trail
	w.look = pauseLeft{side: 64, sp: ctest.At(w.Stack), got: len(w.Stack)}
	return w
}

func (w *trailWorld) follow() (n int) {
	w.look.pieces = 0
	w.copyTrail(os.Getpid())
	return w.look.pieces
}

func (w *trailWorld) pieces() (p process.Pieces) {
	var to look.Look
	w.fill(0, &Hint{}, &to)
	return to.Trail
}

// TestTrail: a pause copies what a trail leads to, each piece in its state at that moment.
func TestTrail(t *testing.T) {
	w := newTrailWorld()
	if n := w.follow(); n != 5 {
		t.Fatalf("%d pieces", n)
	}
	p := w.pieces()
	got := make([]byte, 40*8+16)
	if !p.Read(ctest.At(w.First)+64+10*8-16, got) || !bytes.Equal(got, w.First[64+10*8-16:64+50*8]) {
		t.Error("the first block's used part")
	}
	if !p.Read(ctest.At(w.Second), got[:64]) || !bytes.Equal(got[:64], w.Second[:64]) {
		t.Error("the second block's head")
	}
	if p.Read(ctest.At(w.First)+64+10*8-24, got[:8]) || p.Read(ctest.At(w.First)+64+49*8, got[:16]) ||
		p.Read(^uint64(0), got[:8]) {
		t.Error("more was read than had been copied")
	}
	if n := testing.AllocsPerRun(10, func() { w.follow() }); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}

// TestHostileTrail: whatever memory holds, a trail ends, and the pause copies no more than there is room for.
func TestHostileTrail(t *testing.T) {
	hole, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(hole)
	cases := map[string]struct {
		change func(w *trailWorld)
		want   int
	}{
		"no frame":                         {func(w *trailWorld) { ctest.Put(w.Side, 8, 0) }, 0},
		"a frame on another stack":         {func(w *trailWorld) { ctest.Put(w.Side, 8, ctest.At(w.Owner)) }, 0},
		"a frame at the copy's end":        {func(w *trailWorld) { ctest.Put(w.Side, 8, ctest.At(w.Stack)+256-16) }, 0},
		"a frame around the end of memory": {func(w *trailWorld) { ctest.Put(w.Side, 8, ^uint64(15)) }, 0},
		"side piece too short":             {func(w *trailWorld) { w.look.side = 15 }, 0},
		"no stack":                         {func(w *trailWorld) { w.look.got = 0 }, 0},
		"the owner is nowhere":             {func(w *trailWorld) { ctest.Put(w.Stack, 144, ctest.At(hole)) }, 0},
		"no block":                         {func(w *trailWorld) { ctest.Put(w.Owner, 24, 0) }, 1},
		"the block is nowhere":             {func(w *trailWorld) { ctest.Put(w.Owner, 24, ctest.At(hole)) }, 1},
		"begin is negative":                {func(w *trailWorld) { w.Block(w.First, 0, -5, 50) }, 2},
		"end is before begin":              {func(w *trailWorld) { w.Block(w.First, 0, 60, 50) }, 2},
		"end is enormous":                  {func(w *trailWorld) { w.Block(w.First, 0, 10, 1<<31-1) }, 2},
		"more than there is room for":      {func(w *trailWorld) { w.Block(w.First, 0, 0, process.MaxTrailBytes/8) }, 2},
		"a list that goes round": {func(w *trailWorld) { w.Block(w.Second, ctest.At(w.First), 90, 100) }, 1 +
			2*process.MaxTrailBlocks},
		"offsets out of the head": {func(w *trailWorld) { w.Tracer.Trail.Begin, w.Tracer.Trail.Next = 62, 60 }, 2},
		"the trail is not known":  {func(w *trailWorld) { w.Tracer.Trail.Known = false }, 0},
	}
	for name, c := range cases {
		w := newTrailWorld()
		if c.change(w); w.follow() != c.want {
			t.Errorf("%s: %d pieces, not %d", name, w.look.pieces, c.want)
		}
	}
}

// TestTrailReferences: the pause decodes references as the trail says.
func TestTrailReferences(t *testing.T) {
	head := make([]byte, 16)
	ctest.Put(head, 8, 0x1234_0000_8765<<4)
	w := &process.Trail{Right: 4}
	if r := reference(w, unsafe.Pointer(&head[0]), 8, 16); r != 0x1234_0000_8765 {
		t.Errorf("%#x", r)
	}
	binary.LittleEndian.PutUint32(head[8:], 0xfedcba98)
	w = &process.Trail{Narrow: true, Base: 0x8_0000_0000, Left: 3}
	if r := reference(w, unsafe.Pointer(&head[0]), 8, 16); r != 0x8_0000_0000+0xfedcba98<<3 {
		t.Errorf("%#x", r)
	}
	if r := reference(w, unsafe.Pointer(&head[0]), 0, 16); r != 0 {
		t.Errorf("nil is %#x", r)
	}
}
