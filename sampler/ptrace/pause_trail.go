//go:build linux

package ptrace

import (
	"unsafe"

	"goprof/process"
)

// For most threads a trail leads to nothing: their pause is one comparison longer. Otherwise the pieces come by three
// system calls where there is one block, and by two more for each further block. The cost of these calls is mostly the
// pages that they touch, so no more is copied than is used. The rules of pause.go hold in this file as well.

// trailCopy is what following a trail needs, prepared outside the pause, and what it leaves behind.
type trailCopy struct {
	list [process.MaxTrailPieces]process.Piece
	used int // of reader.trail
}

// copyTrail follows the trail from the copies of the Side and of the stack. If a step cannot be made, what was copied
// before stays: the reader asks for each piece and notices.
//
//go:nosplit
func (t *Tracer) copyTrail(tid int) {
	w := t.Trail
	if w == nil || t.reader == nil || !w.Known || w.HeadSize == 0 || w.Frame < 0 || w.Frame+8 > t.look.side {
		return
	}
	frame := *(*uint64)(unsafe.Add(unsafe.Pointer(&t.reader.side), w.Frame))
	owner, ok := t.stackWord(frame + uint64(w.Owner))
	if frame == 0 || !ok {
		return
	}
	t.trail.used = 0
	at := t.copyPiece(tid, owner, w.OwnerSize)
	if at == nil {
		return
	}
	block := reference(w, at, w.First, w.OwnerSize)
	for range process.MaxTrailBlocks {
		if block == 0 {
			return
		}
		head := t.copyPiece(tid, block, w.HeadSize)
		if head == nil {
			return
		}
		begin, end := int(number(w, head, w.Begin)), int(number(w, head, w.End))
		if w.Less != 0 {
			end -= int(number(w, head, w.Less))
		}
		if 0 <= begin && begin < end && end-begin <= process.MaxTrailBytes/8 {
			from := block + uint64(w.HeadSize) + uint64(begin)*8 - uint64(w.Below)
			t.copyPiece(tid, from, (end-begin)*8+w.Below)
		}
		block = reference(w, head, w.Next, w.HeadSize)
	}
}

// stackWord reads a word of the copy of the thread's own stack.
//
//go:nosplit
func (t *Tracer) stackWord(addr uint64) (uint64, bool) {
	l := &t.look
	from, sp, got := unsafe.SliceData(t.reader.stack), l.sp, l.got
	if l.under > 0 {
		from, sp, got = unsafe.SliceData(t.reader.under), l.underSP, l.under
	}
	if off := addr - sp; got >= 8 && off <= uint64(got-8) {
		return *(*uint64)(unsafe.Add(unsafe.Pointer(from), off)), true
	}
	return 0, false
}

// copyPiece copies another piece, and returns where the copy lies. It returns nil if there is no room, or if the piece
// cannot be read whole.
//
//go:nosplit
func (t *Tracer) copyPiece(tid int, addr uint64, size int) unsafe.Pointer {
	c, d := &t.trail, t.reader
	n := t.look.pieces
	if size <= 0 || size > len(d.trail)-c.used || n >= len(c.list) {
		return nil
	}
	to := unsafe.Add(unsafe.Pointer(&d.trail), c.used)
	d.set(0, (*byte)(to), addr, size)
	if t.fetch(tid, 0, 1) != size {
		return nil
	}
	c.list[n] = process.Piece{Addr: addr, Size: size}
	c.used += size
	t.look.pieces = n + 1
	return to
}

// reference decodes the reference at offset off in head, which is size bytes long. It returns 0 if there is none.
//
//go:nosplit
func reference(w *process.Trail, head unsafe.Pointer, off, size int) uint64 {
	if !w.Narrow {
		if off < 0 || off > size-8 {
			return 0
		}
		return *(*uint64)(unsafe.Add(head, off)) >> (w.Right & 63)
	}
	if off < 0 || off > size-4 {
		return 0
	}
	n := *(*uint32)(unsafe.Add(head, off))
	if n == 0 {
		return 0
	}
	return w.Base + uint64(n)<<(w.Left&63)
}

// number reads a count from a block's head.
//
//go:nosplit
func number(w *process.Trail, head unsafe.Pointer, off int) int32 {
	if off < 0 || off > w.HeadSize-4 {
		return -1
	}
	return *(*int32)(unsafe.Add(head, off))
}
