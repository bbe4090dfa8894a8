//go:build linux

package ptrace

import (
	"unsafe"

	"goprof/process"
)

// A trail leads from the Side to frames in the heap (process.Trail). Most threads have no such frames: then the pause
// is one comparison longer. Otherwise three system calls copy the first block, and two more copy each further block.
// The cost of these calls depends mostly on the pages that they touch, so goprof copies only the used part. The rules
// of pause.go hold here too.

// trailCopy holds what is prepared outside the pause for following a trail, and the results.
type trailCopy struct {
	list [process.MaxTrailPieces]process.Piece
	used int // used bytes of reader.trail
}

// copyTrail follows the trail from the copies of the Side and of the stack. If a step fails, the pieces that were
// copied before it are kept. The code that reads the trail notices a missing piece.
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

// stackWord returns a word of the copy of the thread's own stack.
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

// copyPiece copies size bytes of the target's memory from addr into the reader's trail, as its next piece. It returns a
// pointer to the copy, or nil if there is no room or not all bytes can be read.
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

// number reads a count from the head of a block of frames. It returns -1 if the head does not hold it.
//
//go:nosplit
func number(w *process.Trail, head unsafe.Pointer, off int) int32 {
	if off < 0 || off > w.HeadSize-4 {
		return -1
	}
	return *(*int32)(unsafe.Add(head, off))
}
