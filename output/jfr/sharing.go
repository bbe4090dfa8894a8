package jfr

import (
	"unsafe"

	"goprof/profile"
)

// sharing knows the stacks that were encoded last. Most stacks end in the same callers as one of these, whose bytes are
// copied. It knows stacks of one chunk: other chunks may have other keys.
type sharing struct {
	lasts  [1 << sharingBits]lastStack
	starts []int // of the frames of the stack that is being encoded
}

const (
	sharingBits = 4
	// rootDepth is the depth of the frame by which a stack is found: stacks that have it in common have most of their
	// callers in common.
	rootDepth = 8
)

// lastStack is the stack that was encoded last, of those with the same frame at rootDepth.
type lastStack struct {
	frames []profile.Frame // root first
	sizes  []int           // of each frame: the bytes of it and of its callers
	b      []byte          // of all frames, leaf first
}

func (s *sharing) reset() {
	for i := range s.lasts {
		l := &s.lasts[i]
		clear(l.frames)
		l.frames, l.sizes = l.frames[:0], l.sizes[:0]
	}
}

func (s *sharing) last(frames []profile.Frame) *lastStack {
	at := &frames[max(0, len(frames)-rootDepth)]
	h := uint64(uintptr(unsafe.Pointer(at.Func))) >> 4 * 0x9e3779b97f4a7c15
	return &s.lasts[h>>(64-sharingBits)]
}

// callers is how many frames at the root a stack has in common with the last one.
func (l *lastStack) callers(frames []profile.Frame) (n int) {
	for n < min(len(frames), len(l.frames)) {
		a, b := &l.frames[n], &frames[len(frames)-1-n]
		if a.Func != b.Func || a.Line != b.Line || a.BCI != b.BCI || a.Kind != b.Kind {
			break
		}
		n++
	}
	return n
}

// keep keeps a stack in place of the one with which it has callers in common.
func (l *lastStack) keep(frames []profile.Frame, callers int, starts []int, b []byte) {
	l.frames, l.sizes = l.frames[:callers], l.sizes[:callers]
	for i := len(frames) - callers - 1; i >= 0; i-- {
		l.frames = append(l.frames, frames[i])
		l.sizes = append(l.sizes, len(b)-starts[i])
	}
	l.b = append(l.b[:0], b...)
}

// frames appends a stack's frames.
func (p *pools) frames(b []byte, frames []profile.Frame) []byte {
	if len(frames) == 0 {
		return b
	}
	last := p.sharing.last(frames)
	callers, from := last.callers(frames), len(b)
	starts := p.sharing.starts[:0]
	for i := range frames[:len(frames)-callers] {
		starts = append(starts, len(b)-from)
		b = p.frame(b, &frames[i])
	}
	p.sharing.starts = starts
	if callers > 0 {
		b = append(b, last.b[len(last.b)-last.sizes[callers-1]:]...)
	}
	if len(frames) <= maxKeptDepth {
		last.keep(frames, callers, starts, b[from:])
	}
	return b
}
