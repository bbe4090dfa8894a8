package profile

import "slices"

// tree holds stacks. Stacks share the nodes of their common frames, from the root on. A recording may last for days. So
// a node is small (24 bytes, and 6 to 11 in the index), has no pointer that a garbage collector would follow, and never
// moves.
type tree struct {
	chunks [][]node
	size   int32
	// index finds a node by its parent, function and kind, with open addressing, at most three quarters full. The root has
	// no parent and is never searched for, so 0 is an empty entry.
	index []int32
	stale int // old entries of renamed nodes in index
}

// node is one frame below another. Node 0 is the root, which is not a frame.
type node struct {
	self   [numSlots]int64 // by Weight.slot
	parent int32
	what   uint32 // function and kind
}

// kindBits is how many bits of node.what are the kind.
const kindBits = 4

func whatOf(fn int32, kind Kind) uint32 { return uint32(fn)<<kindBits | uint32(kind)&(1<<kindBits-1) }

func (n *node) fn() int32  { return int32(n.what >> kindBits) }
func (n *node) kind() Kind { return Kind(n.what & (1<<kindBits - 1)) }

const (
	chunkBits = 8
	firstSize = 1 << 8 // of the index
)

func newTree() tree {
	t := tree{index: make([]int32, firstSize)}
	t.push(node{})
	return t
}

func (t *tree) at(n int32) *node { return &t.chunks[n>>chunkBits][n&(1<<chunkBits-1)] }

func (t *tree) push(nd node) int32 {
	n := t.size
	if n&(1<<chunkBits-1) == 0 {
		t.chunks = append(t.chunks, make([]node, 1<<chunkBits))
	}
	t.size++
	*t.at(n) = nd
	return n
}

// copy copies the nodes without their index. A copy can be read, but not extended.
func (t *tree) copy() tree {
	c := tree{chunks: make([][]node, len(t.chunks)), size: t.size}
	for i, chunk := range t.chunks {
		c.chunks[i] = slices.Clone(chunk)
	}
	return c
}

// find returns the node under parent. It is 0 if there is none.
func (t *tree) find(parent int32, what uint32) int32 {
	for at := t.place(parent, what); ; at = (at + 1) & (len(t.index) - 1) {
		n := t.index[at]
		if n == 0 {
			return 0
		}
		if nd := t.at(n); nd.parent == parent && nd.what == what {
			return n
		}
	}
}

func (t *tree) add(parent int32, what uint32) int32 {
	n := t.push(node{parent: parent, what: what})
	if int(t.size)+t.stale > len(t.index)/4*3 {
		t.grow()
	} else {
		t.enter(n)
	}
	return n
}

func (t *tree) enter(n int32) {
	nd := t.at(n)
	at := t.place(nd.parent, nd.what)
	for t.index[at] != 0 {
		at = (at + 1) & (len(t.index) - 1)
	}
	t.index[at] = n
}

func (t *tree) grow() {
	t.index, t.stale = make([]int32, 2*len(t.index)), 0
	for n := int32(1); n < t.size; n++ {
		t.enter(n)
	}
}

// place returns where the search for a node begins. It is Fibonacci hashing, with high bits mixed into low ones: many
// children have the same parent.
func (t *tree) place(parent int32, what uint32) int {
	h := (uint64(uint32(parent))<<32 | uint64(what)) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return int(h>>32) & (len(t.index) - 1)
}
