package jfr

import (
	"hash/maphash"
	"maps"

	"goprof/profile"
)

// stackNumbers gives stacks their numbers. Equal stacks have the same number most of the time, in all chunks of a file.
type stackNumbers struct {
	last     uint64      // that was given out
	byFrames numberTable // by Fingerprint
	prints   profile.Fingerprinter

	// byBytes is a cache before byFrames, by what the file holds of a stack. A stack that was met need not be made again
	// to know its number. That holds as long as the keys in it mean the same: see stackMaker.number.
	byBytes numberTable
	seeds   [2]maphash.Seed
	ofChunk bool              // all that byBytes knows is of the open chunk
	types   map[uint64]string // of frames, by their keys
}

// begin begins a chunk. changed says that keys may mean something else than in the chunk before.
func (n *stackNumbers) begin(changed bool, types map[uint64]string) {
	n.ofChunk = false
	if changed || !maps.Equal(types, n.types) {
		n.forgetBytes()
	}
	n.types = types
}

// forgetBytes forgets what the chunks before had. In a chunk a key has one meaning.
func (n *stackNumbers) forgetBytes() {
	if n.ofChunk {
		return
	}
	n.byBytes.reset()
	n.seeds, n.ofChunk = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, true
}

// forgetFrames is to be called where Funcs are forgotten: a Fingerprint contains their addresses.
func (n *stackNumbers) forgetFrames() {
	n.byFrames, n.prints = numberTable{}, profile.NewFingerprinter(true)
}

// ofBytes is the number of a stack with these bytes; 0 if they are new.
func (n *stackNumbers) ofBytes(b []byte) uint64 { return n.byBytes.get(n.hash(b)) }

// keepBytes gives the bytes of a stack its number.
func (n *stackNumbers) keepBytes(b []byte, number uint64) {
	if n.byBytes.used >= maxNumbers {
		n.byBytes.reset()
	}
	*n.byBytes.find(n.hash(b)) = number
}

func (n *stackNumbers) hash(b []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(n.seeds[0], b), maphash.Bytes(n.seeds[1], b)}
}

// ofFrames is the number of a stack. A stack that was met long ago may get another one.
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

// maxNumbers bounds the stacks whose numbers are known at the same time, of some 50 to 100 bytes each.
const maxNumbers = 1 << 18

// number is the number of the stack of a key; 0 if there is none, or if it has no frames.
func (m *stackMaker) number(key uint64) (uint64, *BadRecording) {
	at := m.k.piece(key)
	if at == nil {
		return 0, nil
	}
	if at.number != 0 {
		return at.number, nil
	}
	if known := m.numbers.ofBytes(at.bytes()); known != 0 && m.means(at) {
		at.number = known
		return known, nil
	}
	s, bad := m.stack(key)
	if bad != nil || len(s.Frames) == 0 {
		return 0, bad
	}
	at.number = m.numbers.ofFrames(s)
	m.numbers.keepBytes(at.bytes(), at.number)
	return at.number, nil
}

// means reports whether a stack that byBytes knows means in this chunk what it meant before. It looks up the methods
// of the stack: lookUp forgets the bytes if one of them has become another. So a chunk that lacks a constant, or has
// one that another chunk lacked, has its own stacks.
func (m *stackMaker) means(at *piece) bool {
	if m.numbers.ofChunk {
		return true
	}
	c := newCursor(at.bytes(), at.of.base+int64(at.from))
	m.record.frames = m.record.frames[:0]
	if _, n := m.head(&c); m.frames != nil && c.bad == nil {
		c.frames(n, m.frames, &m.record)
	}
	for i := range m.record.frames {
		m.code(&m.record.frames[i])
	}
	return c.bad == nil && !m.numbers.ofChunk
}
