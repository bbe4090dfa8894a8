package jfr

import (
	"encoding/binary"
	"math/bits"

	"goprof/profile"
)

// callers keeps recently made stacks. Most stacks have the same callers as a kept stack, in the same bytes. The frames
// of these callers are copied, and are not decoded and looked up again.
type callers struct {
	kept   [1 << 8]keptStack
	next   uint8                 // index in kept for the next stack
	places [1 << placeBits]uint8 // indexes in kept, by a hash of a stack's end
}

const (
	placeBits = 11
	// maxKeptDepth bounds the frames of a kept stack. So it also bounds the memory of all kept stacks.
	maxKeptDepth = 1 << 11
)

// A kept stack is found by its last bytes, those at the root. reaches are the numbers of bytes: the longest match
// counts.
var reaches = [...]int{8, 32, 64, 96, 128, 176, 240, 320}

// keptStack is a stack, and the bytes that it was made of.
type keptStack struct {
	b      []byte   // of its frames
	starts []uint32 // by frame: the bytes from its first one to the end of b
	stack  *profile.Stack
	turn   uint32 // of the space that holds the stack; 0 in an empty entry
	hidden int    // frames at the root that only show why the stack is cut
}

func (k *callers) clear() {
	for i := range k.kept {
		k.kept[i].turn = 0
	}
}

// ends returns where callers notes a stack with this end: one place for each length in reaches, as far as b is long
// enough. n is their number.
func (k *callers) ends(b []byte) (places [len(reaches)]*uint8, n int) {
	h, end := uint64(0), len(b)
	for _, reach := range reaches {
		if len(b) < reach {
			break
		}
		for stop := len(b) - reach; end > stop; end -= 8 {
			h = (h ^ binary.LittleEndian.Uint64(b[end-8:])) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
		places[n] = &k.places[h*0x9e3779b97f4a7c15>>(64-placeBits)]
		n++
	}
	return places, n
}

// find returns a kept stack with the same end as b, and how many bytes at the ends are equal. It returns nil if there
// is none.
func (k *callers) find(b []byte, turn uint32) (of *keptStack, same int) {
	places, n := k.ends(b)
	for n--; n >= 0; n-- {
		at := &k.kept[*places[n]]
		if at.turn != turn {
			continue
		}
		if same := sameEnd(at.b, b); same >= reaches[n] {
			return at, same
		}
	}
	return nil, 0
}

// keep keeps a stack, in place of the oldest kept one.
func (k *callers) keep(b []byte, starts []uint32, s *profile.Stack, hidden int, turn uint32) {
	if len(starts) > maxKeptDepth {
		return
	}
	places, n := k.ends(b)
	for _, place := range places[:n] {
		*place = k.next
	}
	at := &k.kept[k.next]
	at.b, at.stack, at.turn, at.hidden = b, s, turn, hidden
	at.starts = append(at.starts[:0], starts...)
	k.next++
}

// sameEnd returns how many bytes at their ends two texts have in common.
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

// decode decodes up to n frames. It stops at the first frame that the kept stack also has, and returns how many such
// frames there are.
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
