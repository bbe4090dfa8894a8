package jfr

import (
	"hash/maphash"
	"maps"

	"goprof/profile"
)

// stackNumbers gives numbers to stacks. Equal stacks mostly have the same number in all chunks of a file.
type stackNumbers struct {
	last     uint64      // last used number
	byFrames numberTable // by Fingerprint
	prints   profile.Fingerprinter

	// byBytes is a cache in front of byFrames, by a stack's bytes in the file: a stack that it finds need not be decoded.
	// It is valid as long as keys keep their meanings, and only for stacks whose constants are in the chunk.
	byBytes numberTable
	seeds   [2]maphash.Seed
	types   map[uint64]string // of frames, by key
}

// begin begins a chunk. changed: keys may have other meanings than in the previous chunk.
func (n *stackNumbers) begin(changed bool, types map[uint64]string) {
	if changed || !maps.Equal(types, n.types) {
		n.forgetBytes()
	}
	n.types = types
}

func (n *stackNumbers) forgetBytes() {
	n.byBytes.reset()
	n.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
}

// forgetFrames must be called when Funcs are forgotten: a Fingerprint contains their addresses.
func (n *stackNumbers) forgetFrames() {
	n.byFrames, n.prints = numberTable{}, profile.NewFingerprinter()
}

func (n *stackNumbers) hash(b []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(n.seeds[0], b), maphash.Bytes(n.seeds[1], b)}
}

func (n *stackNumbers) keepBytes(hash [2]uint64, number uint64) {
	if n.byBytes.used >= maxNumbers {
		n.byBytes.reset()
	}
	*n.byBytes.find(hash) = number
}

// ofFrames returns the number of a stack. A stack that occurred long ago may get a new number.
func (n *stackNumbers) ofFrames(s *profile.Stack) uint64 {
	if n.byFrames.used >= maxNumbers {
		n.byFrames.reset()
	}
	at := n.byFrames.find(n.prints.Of(s))
	if *at == 0 {
		n.last++
		*at = n.last
	}
	return *at
}

// maxNumbers bounds the stacks whose numbers are kept at the same time, of some 50 to 100 bytes each.
const maxNumbers = 1 << 18

// number returns the number of the stack with this key. It is 0 if there is none, or if it has no frames.
func (m *stackMaker) number(key uint64) (uint64, *BadRecording) {
	at := m.k.piece(key)
	if at == nil {
		return 0, nil
	}
	if at.number != 0 {
		return at.number, nil
	}
	if m.k.sources.takeChanged() { // sources are in events of the chunk
		m.numbers.forgetBytes()
	}
	hash := m.numbers.hash(at.bytes())
	whole := m.whole(at)
	if whole {
		if at.number = m.numbers.byBytes.get(hash); at.number != 0 {
			return at.number, nil
		}
	}
	s, bad := m.stack(key)
	if bad != nil || len(s.Frames) == 0 {
		return 0, bad
	}
	at.number = m.numbers.ofFrames(s)
	if whole {
		m.numbers.keepBytes(hash, at.number)
	}
	return at.number, nil
}

// whole reports whether the chunk has all methods of a stack. goprof's chunks always do. In files of other tools a
// chunk may lack a method that another chunk has. Then the same bytes mean another stack. So each stack is checked.
func (m *stackMaker) whole(at *piece) bool {
	if m.ours {
		return true
	}
	c := newCursor(at.bytes(), at.of.base+int64(at.from))
	m.record.frames = m.record.frames[:0]
	if _, n := m.head(&c); m.frames != nil {
		c.frames(n, m.frames, &m.record)
	}
	for i := range m.record.frames {
		if !m.k.hasMethod(m.record.frames[i].method) {
			return false
		}
	}
	return c.bad == nil
}
