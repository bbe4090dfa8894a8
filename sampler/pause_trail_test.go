//go:build linux

package sampler

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process"
)

// trailWorld is a trail through memory of our own: side, frame, owner, two blocks.
type trailWorld struct {
	*Tracer
	stack, owner, first, second []byte
}

func newTrailWorld() *trailWorld {
	d, err := newDesk(4096)
	if err != nil {
		panic(err)
	}
	w := &trailWorld{Tracer: &Tracer{desk: d}, stack: d.stack[:256], owner: make([]byte, 64), first: make([]byte,
		1024), second: make([]byte, 1024)}
	w.Trail = &process.Trail{Known: true, Frame: 8, Owner: 16, OwnerSize: 32, First: 24, HeadSize: 64, Next: 8,
		Begin: 16, End: 20, Below: 16}
	w.look = look{side: 64, sp: at(w.stack), got: len(w.stack)}
	binary.LittleEndian.PutUint64(w.desk.side[8:], at(w.stack)+128)
	put(w.stack, 128+16, at(w.owner))
	put(w.owner, 24, at(w.first))
	w.block(w.first, at(w.second), 10, 50)
	w.block(w.second, 0, 90, 100)
	return w
}

func (w *trailWorld) block(b []byte, next uint64, begin, end int32) {
	for i := range b {
		b[i] = byte(i * 7)
	}
	put(b, 8, next)
	binary.LittleEndian.PutUint32(b[16:], uint32(begin))
	binary.LittleEndian.PutUint32(b[20:], uint32(end))
}

func at(b []byte) uint64              { return uint64(uintptr(unsafe.Pointer(&b[0]))) }
func put(b []byte, off int, v uint64) { binary.LittleEndian.PutUint64(b[off:], v) }
func (w *trailWorld) follow() (n int) {
	w.look.pieces = 0
	w.copyTrail(os.Getpid())
	return w.look.pieces
}
func (w *trailWorld) pieces() (p process.Pieces) {
	snap := process.Snapshot{}
	w.keepTrail(&snap)
	return snap.Trail
}

// TestTrail: what a trail leads to is copied, each piece as it stands.
func TestTrail(t *testing.T) {
	w := newTrailWorld()
	if n := w.follow(); n != 5 {
		t.Fatalf("%d pieces", n)
	}
	p := w.pieces()
	got := make([]byte, 40*8+16)
	if !p.Read(at(w.first)+64+10*8-16, got) || !bytes.Equal(got, w.first[64+10*8-16:64+50*8]) {
		t.Error("the first block's used part")
	}
	if !p.Read(at(w.second), got[:64]) || !bytes.Equal(got[:64], w.second[:64]) {
		t.Error("the second block's head")
	}
	if p.Read(at(w.first)+64+10*8-24, got[:8]) || p.Read(at(w.first)+64+49*8, got[:16]) || p.Read(^uint64(0), got[:8]) {
		t.Error("more was read than had been copied")
	}
	if n := testing.AllocsPerRun(10, func() { w.follow() }); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}

// TestHostileTrail: whatever memory holds, a trail ends, and copies no more than there is room for.
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
		"no frame":                         {func(w *trailWorld) { put(w.desk.side[:], 8, 0) }, 0},
		"a frame on another stack":         {func(w *trailWorld) { put(w.desk.side[:], 8, at(w.owner)) }, 0},
		"a frame at the copy's end":        {func(w *trailWorld) { put(w.desk.side[:], 8, at(w.stack)+256-16) }, 0},
		"a frame around the end of memory": {func(w *trailWorld) { put(w.desk.side[:], 8, ^uint64(15)) }, 0},
		"side piece too short":             {func(w *trailWorld) { w.look.side = 15 }, 0},
		"no stack":                         {func(w *trailWorld) { w.look.got = 0 }, 0},
		"the owner is nowhere":             {func(w *trailWorld) { put(w.stack, 144, at(hole)) }, 0},
		"no block":                         {func(w *trailWorld) { put(w.owner, 24, 0) }, 1},
		"the block is nowhere":             {func(w *trailWorld) { put(w.owner, 24, at(hole)) }, 1},
		"begin is negative":                {func(w *trailWorld) { w.block(w.first, 0, -5, 50) }, 2},
		"end is before begin":              {func(w *trailWorld) { w.block(w.first, 0, 60, 50) }, 2},
		"end is enormous":                  {func(w *trailWorld) { w.block(w.first, 0, 10, 1<<31-1) }, 2},
		"more than there is room for":      {func(w *trailWorld) { w.block(w.first, 0, 0, process.MaxTrailBytes/8) }, 2},
		"a list that goes round": {func(w *trailWorld) { w.block(w.second, at(w.first), 90, 100) }, 1 +
			2*process.MaxTrailBlocks},
		"offsets out of the head": {func(w *trailWorld) { w.Trail.Begin, w.Trail.Next = 62, 60 }, 2},
		"the trail is not known":  {func(w *trailWorld) { w.Trail.Known = false }, 0},
	}
	for name, c := range cases {
		w := newTrailWorld()
		if c.change(w); w.follow() != c.want {
			t.Errorf("%s: %d pieces, not %d", name, w.look.pieces, c.want)
		}
	}
}

// TestTrailReferences: references are decoded as the trail says.
func TestTrailReferences(t *testing.T) {
	head := make([]byte, 16)
	put(head, 8, 0x1234_0000_8765<<4)
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
