package jfr

import "goprof/profile"

// metStacks are encoded stacks of earlier chunks. A method keeps its key from chunk to chunk. So if a stack comes again
// in a later chunk, its encoded form is copied, and its frames need not be read. Stacks are identified by their numbers
// in the file that is read, so metStacks is used only when a recording file is converted.
type metStacks struct {
	at     profile.ByStack[*metStack]
	blocks [][]byte   // that hold the bytes of stacks
	unused []metStack // to be given out
	turn   uint32     // how often all stacks were forgotten
	// Of methods, by their keys from first on.
	first   uint64
	methods []metMethod
}

// metMethod is a method, and what its constant refers to.
type metMethod struct {
	methodKey
	at, class, name *constant
}

// metStack is a stack's bytes, and what events say of its leaf.
type metStack struct {
	b    []byte
	leaf leafFacts
	turn uint32
	// Most stacks end in the callers of another one. Only their own frames, those before these callers, need be looked
	// at if the chunk has the callers.
	like        *metStack // nil if the stack shares no callers
	frames, own uint32
	// The chunk has the methods of so many frames at the root.
	chunk uint64
	has   uint32
	// The chunk keyOf has the stack, with this key.
	keyOf, key uint64
}

const (
	metBlock     = 1 << 20 // bytes
	maxMetBlocks = 32
	metAtOnce    = 1 << 10
)

// forget is called where methods get new keys, from first on.
func (m *metStacks) forget(first uint64) { *m = metStacks{first: first, turn: m.turn + 1} }

func (m *metStacks) addMethod(k methodKey, at *constant) {
	m.methods = append(m.methods, metMethod{methodKey: k, at: at})
}

// keep keeps a stack that was encoded, in the chunk of that number. If there is no room, it forgets all others. It is
// nil if the stack is too large.
func (m *metStacks) keep(number uint64, b []byte, leaf leafFacts, chunk uint64) *metStack {
	if len(b) > metBlock {
		return nil
	}
	if n := len(m.blocks); n == 0 || len(b) > metBlock-len(m.blocks[n-1]) {
		if n == maxMetBlocks {
			m.at, m.blocks = profile.ByStack[*metStack]{}, nil
			m.turn++
		}
		m.blocks = append(m.blocks, make([]byte, 0, metBlock))
	}
	last := &m.blocks[len(m.blocks)-1]
	from := len(*last)
	*last = append(*last, b...)
	if len(m.unused) == 0 {
		m.unused = make([]metStack, metAtOnce)
	}
	s := &m.unused[0]
	m.unused = m.unused[1:]
	c := newCursor(b, 0)
	c.byte() // it is truncated
	n := uint32(c.int())
	*s = metStack{b: (*last)[from:], leaf: leaf, turn: m.turn, frames: n, own: n, chunk: chunk, has: n}
	m.at.Put(number, 0, s)
	return s
}

// keepEncoded keeps the stack that was encoded last.
func (p *pools) keepEncoded(number uint64, t trace) {
	s := p.met.keep(number, p.scratch, t.leaf, p.chunk)
	if s == nil {
		return
	}
	s.keyOf, s.key = p.chunk, t.key
	if s.b[0] != 0 { // the last frame of a cut stack says why it is cut: no other stack shares it
		return
	}
	last := &p.sharing.last
	if like := last.like; like != nil && like.turn == s.turn {
		s.like, s.own = like, s.frames-uint32(last.callers)
	}
	if last.kept != nil {
		last.kept.met = s
	}
}

// again returns the constant of a stack that was met, if it was.
func (p *pools) again(number uint64) (t trace, met bool) {
	s, met := p.met.at.Get(number, 0)
	if !met {
		return trace{}, false
	}
	if s.keyOf != p.chunk {
		p.methodsOf(s)
		s.keyOf, s.key = p.chunk, p.stackOf.find(&p.stacks, s.b)
	}
	return trace{s.key, s.leaf}, true
}

// methodsOf sees to it that the chunk has all methods of a stack, in the order of its frames.
func (p *pools) methodsOf(s *metStack) {
	for n := s.frames; n > 0; s = s.like {
		if s.chunk == p.chunk && s.has >= n {
			return
		}
		if before := s.frames - n; before < s.own {
			p.methodsIn(s, before)
		}
		s.chunk, s.has = p.chunk, n
		n = min(n, s.frames-s.own)
	}
}

// methodsIn sees to it that the chunk has the methods of a stack's own frames, except for the first ones.
func (p *pools) methodsIn(s *metStack, but uint32) {
	m := &p.met
	c := newCursor(s.b, 0)
	c.byte() // it is truncated
	c.int()  // frames
	c.skip(numbersOfFrame * int(but))
	for range s.own - but {
		method := &m.methods[c.int()-m.first]
		c.skipThree() // line, bytecode index, type
		if method.at.chunk != p.chunk {
			p.writeMethod(method)
		}
	}
}

// numbersOfFrame is how many numbers a frame has: method, line, bytecode index, type.
const numbersOfFrame = 4
