package jfr

import (
	"slices"
	"unsafe"

	"goprof/profile"
)

// sharing knows the stacks that were encoded lately. Most stacks end in the same callers as one of these, whose bytes
// are copied. It knows stacks of one chunk: other chunks may have other keys.
type sharing struct {
	kept   [1 << 7]encoded
	next   uint8                   // place of the next one to be kept
	places [1 << sharingBits]uint8 // of stacks, by a hash of their callers
	starts []uint32                // of the frames of the stack that is being encoded
	last   lastEncoded
}

// lastEncoded is the stack that was encoded last.
type lastEncoded struct {
	kept    *encoded  // nil if it was too deep to be kept
	callers int       // that it shares with another stack
	like    *metStack // that stack, if it is known from chunk to chunk
}

const (
	sharingBits = 11
	// maxEncoded bounds the frames of a stack that is kept, and so the memory of all.
	maxEncoded = 1 << 9
)

// depths are the numbers of frames at a stack's root by which a kept stack is found: the largest that is found counts.
var depths = [...]int{1, 8, 16, 24, 32, 40, 52, 64, 96}

// encoded is a stack that was encoded, leaf first, and the bytes of its frames.
type encoded struct {
	frames []profile.Frame
	starts []uint32 // of each frame in b
	b      []byte
	met    *metStack // nil if the stack is not known from chunk to chunk
}

func (s *sharing) reset() {
	s.last = lastEncoded{}
	for i := range s.kept {
		k := &s.kept[i]
		clear(k.frames)
		k.frames, k.met = k.frames[:0], nil
	}
}

// callers are the places of stacks that have the same frames at their root, for each of depths that the stack has.
func (s *sharing) callers(frames []profile.Frame) (places [len(depths)]*uint8, n int) {
	h, left := uint64(0), len(frames)
	for _, depth := range depths {
		if len(frames) < depth {
			break
		}
		for ; left > len(frames)-depth; left-- {
			f := &frames[left-1]
			where := uint64(uint32(f.Line))<<32 | uint64(uint32(f.BCI))
			h = (h ^ uint64(uintptr(unsafe.Pointer(f.Func))) ^ where) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
		places[n] = &s.places[h*0x9e3779b97f4a7c15>>(64-sharingBits)]
		n++
	}
	return places, n
}

// find finds the kept stack that has most callers in common with a stack, and how many these are.
func (s *sharing) find(frames []profile.Frame, places []*uint8) (of *encoded, callers int) {
	for i, place := range slices.Backward(places) {
		if k := &s.kept[*place]; len(k.frames) > 0 {
			if n := k.common(frames); n >= depths[i] {
				return k, n
			}
		}
	}
	return nil, 0
}

// common is how many frames at the root two stacks have in common.
func (e *encoded) common(frames []profile.Frame) (n int) {
	for n < min(len(frames), len(e.frames)) {
		a, b := &e.frames[len(e.frames)-1-n], &frames[len(frames)-1-n]
		if a.Func != b.Func || a.Line != b.Line || a.BCI != b.BCI || a.Kind != b.Kind {
			break
		}
		n++
	}
	return n
}

// bytes are the bytes of so many frames at the root.
func (e *encoded) bytes(callers int) []byte { return e.b[e.starts[len(e.frames)-callers]:] }

// keep keeps a stack, in place of the one that was kept first.
func (s *sharing) keep(frames []profile.Frame, places []*uint8, b []byte) {
	for _, place := range places {
		*place = s.next
	}
	k := &s.kept[s.next]
	k.frames = append(k.frames[:0], frames...)
	k.starts = append(k.starts[:0], s.starts...)
	k.b = append(k.b[:0], b...)
	k.met, s.last.kept = nil, k
	s.next = (s.next + 1) % uint8(len(s.kept))
}

// frames appends a stack's frames.
func (p *pools) frames(b []byte, frames []profile.Frame) []byte {
	s, from := &p.sharing, len(b)
	places, n := s.callers(frames)
	like, callers := s.find(frames, places[:n])
	s.starts, s.last = s.starts[:0], lastEncoded{callers: callers}
	if callers > 0 {
		s.last.like = like.met
	}
	for i := range frames[:len(frames)-callers] {
		s.starts = append(s.starts, uint32(len(b)-from))
		b = p.frame(b, &frames[i])
	}
	if callers > 0 {
		at := like.starts[len(like.frames)-callers:]
		for _, start := range at {
			s.starts = append(s.starts, uint32(len(b)-from)+start-at[0])
		}
		b = append(b, like.bytes(callers)...)
	}
	if len(frames) <= maxEncoded {
		s.keep(frames, places[:n], b[from:])
	}
	return b
}
