package jfr

import "goprof/profile"

// metStacks are stacks of earlier chunks, as they were encoded: a method keeps its key from chunk to chunk. A stack
// that comes again in a later chunk is copied, and its frames need not be read. Stacks are found by their numbers, so
// only a recording that is read from a file has any here.
type metStacks struct {
	at     profile.ByStack[metStack]
	blocks [][]byte // that hold the bytes of stacks
	// Of methods, by their keys from first on.
	first   uint64
	methods []methodKey
	chunks  []uint64 // the last one that has the method
}

// metStack is the place of a stack's bytes, and what events say of its leaf.
type metStack struct {
	block, from, to uint32
	leaf            leafFacts
}

const (
	metBlock     = 1 << 20 // bytes
	maxMetBlocks = 32
)

// forget is called where methods get new keys, from first on.
func (m *metStacks) forget(first uint64) { *m = metStacks{first: first} }

// addMethod adds the method with the next key.
func (m *metStacks) addMethod(k methodKey) {
	m.methods, m.chunks = append(m.methods, k), append(m.chunks, 0)
}

// keep keeps a stack that was encoded. If there is no room, it forgets all others.
func (m *metStacks) keep(number uint64, b []byte, leaf leafFacts) {
	if len(b) > metBlock {
		return
	}
	if n := len(m.blocks); n == 0 || len(b) > metBlock-len(m.blocks[n-1]) {
		if n == maxMetBlocks {
			m.at, m.blocks = profile.ByStack[metStack]{}, m.blocks[:0]
		}
		m.blocks = append(m.blocks, make([]byte, 0, metBlock))
	}
	last := len(m.blocks) - 1
	from := len(m.blocks[last])
	m.blocks[last] = append(m.blocks[last], b...)
	m.at.Put(number, 0, metStack{uint32(last), uint32(from), uint32(from + len(b)), leaf})
}

// again is the constant of a stack that was met, if it was.
func (p *pools) again(number uint64) (t trace, met bool) {
	m := &p.met
	at, met := m.at.Get(number, 0)
	if !met {
		return trace{}, false
	}
	b := m.blocks[at.block][at.from:at.to]
	c := newCursor(b, 0)
	c.byte() // it is truncated
	for range c.int() {
		n := c.int() - m.first
		c.skipThree() // line, bytecode index, type
		if m.chunks[n] != p.chunk {
			p.method(m.methods[n].fn, m.methods[n].sort)
		}
	}
	return trace{p.stackOf.find(&p.stacks, b), at.leaf}, true
}
