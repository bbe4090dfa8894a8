package jfr

import (
	"encoding/binary"
	"math/bits"

	"goprof/profile"
)

// callers knows stacks that were made lately. Most stacks end in the same callers as one of them, in the same bytes, so
// these frames need not be decoded and looked up again: they are copied.
type callers struct {
	kept   [1 << 7]keptStack
	next   uint8                 // place of the next one to be kept
	places [1 << placeBits]uint8 // of stacks, by a hash of their ends
}

const (
	placeBits = 9
	// maxKeptDepth bounds the frames of a stack that is kept, and so the memory of all.
	maxKeptDepth = 1 << 11
)

// reaches are the numbers of bytes at a stack's root by which a kept stack is found: the longest first.
var reaches = [...]int{96, 32, 8}

// keptStack is a stack that was made, and the bytes that it was made of.
type keptStack struct {
	b      []byte   // of its frames
	starts []uint32 // of each frame: the bytes from its first one to the end of b
	stack  *profile.Stack
	turn   uint32 // of the space that the stack is in; 0 of an empty place
	hidden int    // frames at the root that are none of the stack's: they say why it is cut
}

func (k *callers) clear() {
	for i := range k.kept {
		k.kept[i].turn = 0
	}
}

// place is where the place of a stack is noted that ends in the last bytes of b; nil if b has fewer.
func (k *callers) place(b []byte, reach int) *uint8 {
	if len(b) < reach {
		return nil
	}
	h := uint64(reach)
	for end := len(b); reach > 0; reach -= 8 {
		h = (h ^ binary.LittleEndian.Uint64(b[end-8:])) * 0x9e3779b97f4a7c15
		h ^= h >> 29
		end -= 8
	}
	return &k.places[h*0x9e3779b97f4a7c15>>(64-placeBits)]
}

// find finds a kept stack that ends as b does, and in how many bytes; nil if there is none.
func (k *callers) find(b []byte, turn uint32) (of *keptStack, same int) {
	for _, reach := range reaches {
		place := k.place(b, reach)
		if place == nil {
			continue
		}
		at := &k.kept[*place]
		if at.turn != turn {
			continue
		}
		if n := sameEnd(at.b, b); n >= reach {
			return at, n
		}
	}
	return nil, 0
}

// keep keeps a stack, in place of the one that was kept first.
func (k *callers) keep(b []byte, starts []uint32, s *profile.Stack, hidden int, turn uint32) {
	if len(starts) > maxKeptDepth {
		return
	}
	for _, reach := range reaches {
		if place := k.place(b, reach); place != nil {
			*place = k.next
		}
	}
	at := &k.kept[k.next]
	at.b, at.stack, at.turn, at.hidden = b, s, turn, hidden
	at.starts = append(at.starts[:0], starts...)
	k.next = (k.next + 1) % uint8(len(k.kept))
}

// sameEnd is how many bytes at the end two texts have in common.
func sameEnd(a, b []byte) int {
	n := 0
	for most := min(len(a), len(b)); n+8 <= most; n += 8 {
		x := binary.LittleEndian.Uint64(a[len(a)-n-8:]) ^ binary.LittleEndian.Uint64(b[len(b)-n-8:])
		if x != 0 {
			return n + bits.LeadingZeros64(x)/8
		}
	}
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// decode decodes n frames until those are reached that a kept stack has, too. shared is the number of these.
func (m *stackMaker) decode(c *cursor, n int, kept *keptStack, same int) (shared int) {
	of, last := m.frames, 0
	if kept != nil {
		last = len(kept.starts)
	}
	for i := range n {
		left := c.left()
		if left <= same && last >= n-i && kept.starts[last-(n-i)] == uint32(left) {
			m.starts = append(m.starts, kept.starts[last-(n-i):]...)
			return n - i
		}
		m.starts = append(m.starts, uint32(left))
		c.frames(1, of, &m.record)
	}
	return 0
}
