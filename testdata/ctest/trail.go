//go:build linux

package ctest

import (
	"encoding/binary"
	"unsafe"

	"goprof/process"
)

// Trail leads through memory of the test's own: side, frame, owner, two blocks.
type Trail struct {
	process.Trail
	Side, Stack, Owner, First, Second []byte
}

// NewTrail makes one from a side piece and a stack of 256 bytes.
func NewTrail(side, stack []byte) *Trail {
	w := &Trail{Side: side, Stack: stack, Owner: make([]byte, 64), First: make([]byte, 1024), Second: make([]byte, 1024)}
	w.Trail = process.Trail{Known: true, Frame: 8, Owner: 16, OwnerSize: 32, First: 24, HeadSize: 64, Next: 8,
		Begin: 16, End: 20, Below: 16}
	Put(side, 8, At(stack)+128)
	Put(stack, 128+16, At(w.Owner))
	Put(w.Owner, 24, At(w.First))
	w.Block(w.First, At(w.Second), 10, 50)
	w.Block(w.Second, 0, 90, 100)
	return w
}

// Block makes b a block of the trail.
func (w *Trail) Block(b []byte, next uint64, begin, end int32) {
	for i := range b {
		b[i] = byte(i * 7)
	}
	Put(b, 8, next)
	binary.LittleEndian.PutUint32(b[16:], uint32(begin))
	binary.LittleEndian.PutUint32(b[20:], uint32(end))
}

// At is where bytes lie.
func At(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

// Put writes a word.
func Put(b []byte, off int, v uint64) { binary.LittleEndian.PutUint64(b[off:], v) }
