package profile

import "time"

// DefaultMaxNodes bounds the memory of a profile: about 70 bytes for each node.
const DefaultMaxNodes = 1 << 20

const (
	// maxFuncs and maxIdentities bound the table of functions and its cache.
	maxFuncs      = 1 << 24
	maxIdentities = 1 << 16
	kindBits      = 4
)

// Profile is the sum of many stacks: a tree in which stacks share what they have in
// common from the root on, and an account of every look that was attempted. It is
// not safe for concurrent use.
type Profile struct {
	Meta   Meta
	Counts Counts
	// Overflow is how many samples found the tree full. They are in the profile too,
	// under a frame of their own that says so.
	Overflow int64
	// CPU is the CPU time of all stacks.
	CPU time.Duration

	maxNodes int
	nodes    []node           // nodes[0] is the root and no frame
	children map[uint64]int32 // edge -> node
	funcs    []*Func          // one for each content
	byFunc   map[Func]int32   // content -> index in funcs
	byPtr    map[*Func]int32  // identity -> index in funcs, a cache
	labels   map[string]*Func // roots that Add was given
	reasons  [NumReasons]*Func
	full     *Func

	// The path of the last stack, root first: the next one mostly begins like it.
	path []step
}

// ownFrames stand for what no stack does.
var ownFrames = [...]string{"[profile full: stack not kept]", NotSampled, ExitedThreads}

type node struct {
	self   [numWeights]int64
	parent int32
	fn     int32
	kind   Kind
}

type step struct {
	fn   *Func
	kind Kind
	node int32
}

// New makes an empty profile with room for DefaultMaxNodes.
func New() *Profile { return NewSize(DefaultMaxNodes) }

// NewSize makes an empty profile whose tree never has more than maxNodes nodes.
func NewSize(maxNodes int) *Profile {
	p := &Profile{
		maxNodes: min(max(maxNodes, 1+len(ownFrames)), 1<<31-1),
		nodes:    make([]node, 1, 1024),
		children: make(map[uint64]int32),
		byFunc:   make(map[Func]int32),
		byPtr:    make(map[*Func]int32),
		labels:   make(map[string]*Func),
		full:     &Func{Name: ownFrames[0]},
	}
	for r := range NumReasons {
		p.reasons[r] = &Func{Name: "[truncated: " + r.String() + "]"}
	}
	return p
}

// Add counts a stack n times; see AddTimed.
func (p *Profile) Add(root string, s *Stack, n int64) { p.AddTimed(root, s, n, 0) }

// AddTimed counts a stack n times, with the CPU time that its thread had used. A root that is not
// empty stands above all its frames (the name of its thread); below it a stack that does not reach its
// thread's root has a frame that says why. Once its frames are known, adding a stack allocates
// nothing. The stack is not kept, its Funcs are.
func (p *Profile) AddTimed(root string, s *Stack, n int64, cpu time.Duration) {
	if n <= 0 {
		return
	}
	p.Counts.add(s.Truncated, n)
	at := p.under(root)
	if s.Truncated != Whole {
		at.down(p.reason(s.Truncated), Gap)
	}
	for i := len(s.Frames) - 1; i >= 0; i-- {
		at.down(s.Frames[i].Func, s.Frames[i].Kind)
	}
	if at.full {
		p.Overflow += n
	}
	at.weigh(n, cpu)
	p.CPU += cpu
}

// SetTime is how much CPU time no stack is known for, under a frame that says why.
func (p *Profile) SetTime(why string, cpu time.Duration) {
	p.nodes[p.own(p.label(why))].self[CPUTime] = int64(cpu)
}

// Lose counts n looks that gave no stack at all.
func (p *Profile) Lose(why Reason, n int64) {
	if n > 0 {
		p.Counts.lose(why, n)
	}
}

// Nodes is the size of the tree without its root.
func (p *Profile) Nodes() int { return len(p.nodes) - 1 }

// cursor walks down the tree from the root and makes what is missing.
type cursor struct {
	p        *Profile
	node     int32
	depth    int
	diverged bool // from the path of the last stack
	full     bool
}

// under begins at the root, or at the label of one.
func (p *Profile) under(root string) cursor {
	at := cursor{p: p}
	if root != "" {
		at.down(p.label(root), Gap)
	}
	return at
}

// weigh ends the way down.
func (c *cursor) weigh(samples int64, cpu time.Duration) {
	p := c.p
	p.path = p.path[:c.depth]
	if c.full {
		c.node = p.overflow()
	}
	p.nodes[c.node].self[Samples] += samples
	p.nodes[c.node].self[CPUTime] += int64(cpu)
}

func (c *cursor) down(fn *Func, kind Kind) {
	p := c.p
	if c.full {
		return
	}
	if !c.diverged && c.depth < len(p.path) {
		if s := &p.path[c.depth]; s.fn == fn && s.kind == kind {
			c.node = s.node
			c.depth++
			return
		}
	}
	if !c.diverged {
		c.diverged = true
		p.path = p.path[:c.depth]
	}
	id, ok := p.identify(fn)
	if ok {
		c.node, ok = p.child(c.node, id, kind)
	}
	if !ok {
		c.full = true
		return
	}
	p.path = append(p.path, step{fn, kind, c.node})
	c.depth++
}

// child finds the node under parent, or makes it unless the tree is full. One place is
// kept for the overflow frame.
func (p *Profile) child(parent, fn int32, kind Kind) (int32, bool) {
	edge := edgeOf(parent, fn, kind)
	if n, ok := p.children[edge]; ok {
		return n, true
	}
	if len(p.nodes) >= p.maxNodes-len(ownFrames) {
		return 0, false
	}
	return p.newNode(edge, node{parent: parent, fn: fn, kind: kind}), true
}

func edgeOf(parent, fn int32, kind Kind) uint64 {
	return uint64(parent)<<32 | uint64(fn)<<kindBits | uint64(kind)&(1<<kindBits-1)
}

func (p *Profile) newNode(edge uint64, nd node) int32 {
	n := int32(len(p.nodes))
	p.nodes = append(p.nodes, nd)
	p.children[edge] = n
	return n
}

// overflow is the one frame of all stacks for which there was no room.
func (p *Profile) overflow() int32 { return p.own(p.full) }

// own finds or makes a frame of the profile's own, for which there is always room.
func (p *Profile) own(fn *Func) int32 {
	id, ok := p.byFunc[*fn]
	if !ok {
		id = p.newFunc(fn)
	}
	edge := edgeOf(0, id, Gap)
	if n, ok := p.children[edge]; ok {
		return n
	}
	return p.newNode(edge, node{fn: id, kind: Gap})
}

// identify gives a function its number. Different Funcs with the same content are one
// function: a walker that forgets its names and reads them again must not split a tree.
func (p *Profile) identify(fn *Func) (int32, bool) {
	if id, ok := p.byPtr[fn]; ok {
		return id, true
	}
	id, ok := p.byFunc[*fn]
	if !ok {
		if len(p.funcs) >= min(maxFuncs, p.maxNodes) {
			return 0, false
		}
		id = p.newFunc(fn)
	}
	if len(p.byPtr) >= maxIdentities {
		clear(p.byPtr)
	}
	p.byPtr[fn] = id
	return id, true
}

func (p *Profile) newFunc(fn *Func) int32 {
	id := int32(len(p.funcs))
	p.funcs = append(p.funcs, fn)
	p.byFunc[*fn] = id
	return id
}

// label makes a frame of a root's text, once.
func (p *Profile) label(root string) *Func {
	fn, ok := p.labels[root]
	if !ok {
		if len(p.labels) >= maxIdentities {
			clear(p.labels)
		}
		fn = &Func{Name: root}
		p.labels[root] = fn
	}
	return fn
}

func (p *Profile) reason(r Reason) *Func {
	if r < NumReasons {
		return p.reasons[r]
	}
	return p.reasons[Other]
}
