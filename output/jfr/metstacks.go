package jfr

import "goprof/profile"

// metStacks are encoded stacks of earlier chunks. A method keeps its key from chunk to chunk. So if a stack occurs
// again in a later chunk, its encoded form is copied, and its frames are not read. Stacks are identified by their
// numbers in the input file: metStacks is used only when a recording file is converted.
type metStacks struct {
	at     profile.ByStack[*metStack]
	blocks [][]byte   // hold the bytes of stacks
	unused []metStack // for new entries
	// Methods, by their keys from first on.
	first   uint64
	methods []metMethod
}

// metMethod is a method, and the constants that it refers to.
type metMethod struct {
	methodKey
	at, class, name *constant
}

// metStack is a stack's bytes, and the fields of events that come from its leaf.
type metStack struct {
	b    []byte
	leaf leafFacts
	// The last chunk with the stack, and the stack's key there.
	chunk, key uint64
}

const (
	metBlock     = 1 << 20 // bytes
	maxMetBlocks = 32
	metAtOnce    = 1 << 10
)

// forget is called when methods get new keys, from first on.
func (m *metStacks) forget(first uint64) { *m = metStacks{first: first} }

func (m *metStacks) addMethod(k methodKey, at *constant) {
	m.methods = append(m.methods, metMethod{methodKey: k, at: at})
}

// keep keeps the encoded bytes of a stack, unless they are too many. If there is no room, it first drops all other
// stacks.
func (m *metStacks) keep(number uint64, b []byte, t trace, chunk uint64) {
	if len(b) > metBlock {
		return
	}
	if n := len(m.blocks); n == 0 || len(b) > metBlock-len(m.blocks[n-1]) {
		if n == maxMetBlocks {
			m.at, m.blocks = profile.ByStack[*metStack]{}, nil
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
	*s = metStack{b: (*last)[from:], leaf: t.leaf, chunk: chunk, key: t.key}
	m.at.Put(number, 0, s)
}

// again returns the constant of the stack with this number. met is false if no such stack is kept.
func (p *pools) again(number uint64) (t trace, met bool) {
	s, met := p.met.at.Get(number, 0)
	if !met {
		return trace{}, false
	}
	if s.chunk != p.chunk {
		p.methodsOf(s)
		s.chunk, s.key = p.chunk, p.encoded(s.b)
	}
	return trace{s.key, s.leaf}, true
}

// methodsOf writes those methods of a stack that the chunk lacks, in the order of the frames.
func (p *pools) methodsOf(s *metStack) {
	m := &p.met
	c := newCursor(s.b, 0)
	c.byte() // whether it is truncated
	for range c.int() {
		method := &m.methods[c.int()-m.first]
		c.skipThree() // line, bytecode index, type
		if method.at.chunk != p.chunk {
			p.writeMethod(method)
		}
	}
}
