package profile

import (
	"hash/maphash"
	"maps"
	"slices"
	"time"
)

// DefaultMaxNodes bounds the memory of a profile: 30 bytes for each node, because the index is then full (tree.go).
const DefaultMaxNodes = 3 << 18

// Profile is the sum of many stacks: a tree in which stacks share their common frames from the root on, and an account
// of every attempted look. It is not safe for concurrent use.
type Profile struct {
	Meta   Meta
	Counts Counts
	// Sure counts samples by how certain it is which method was running.
	Sure [NumCertainty]int64
	// Overflow is how many samples found the tree full. They are in the profile, too: their stack ends at the first frame
	// from the root that is not in the tree, with a frame that says so.
	Overflow int64
	// Time is the time of all stacks: CPU time, or in wall-clock modes elapsed time.
	Time time.Duration
	// Unnamed is how much of the total weight Settled has moved from guessed leaves.
	Unnamed int64

	maxNodes int
	maxFuncs int
	cuts     int // number of nodes that say that the tree is full
	tree     tree
	funcs    functions
	labels   map[string]*Func // roots passed to Add
	reasons  [NumReasons]*Func
	full     *Func
	guesses  Guesses
	guessed  map[int32][numSlots]int64 // the part of a node's own counts whose leaf is a guess

	// The path of the last stack, root first: the next stack mostly begins like it.
	path []step
}

// ownFrames are frames that no stack has.
var ownFrames = [...]string{"[profile full: callees not kept]", NotSampled, ExitedThreads}

// cutShare is the part of all nodes that may be frames that say that the tree is full.
const cutShare = 16

type step struct {
	fn   *Func
	kind Kind
	node int32
}

// New makes an empty profile with room for DefaultMaxNodes.
func New() *Profile { return NewSize(DefaultMaxNodes) }

// NewSize makes an empty profile. Its tree never has more than maxNodes nodes.
func NewSize(maxNodes int) *Profile {
	p := &Profile{
		maxNodes: min(max(maxNodes, 1+len(ownFrames)), 1<<31-1),
		tree:     newTree(),
		funcs: functions{seed: maphash.MakeSeed(), index: make([]int32, firstSize),
			byPtr: make(map[*Func]int32)},
		labels:  make(map[string]*Func),
		guessed: make(map[int32][numSlots]int64),
		full:    &Func{Name: ownFrames[0]},
	}
	p.maxFuncs = min(maxFuncs, p.maxNodes)
	for r := range NumReasons {
		p.reasons[r] = &Func{Name: "[truncated: " + r.String() + "]"}
	}
	return p
}

// Copy returns the profile as it is now. The copy can be read while p grows, but nothing can be added to it.
func (p *Profile) Copy() *Profile {
	return &Profile{Meta: p.Meta, Counts: p.Counts, Sure: p.Sure, Overflow: p.Overflow, Time: p.Time, Unnamed: p.Unnamed,
		tree: p.tree.copy(), funcs: functions{list: slices.Clip(p.funcs.list)}, guesses: p.guesses.copy(),
		guessed: maps.Clone(p.guessed)}
}

// TakeStacks removes all stacks from the profile, and returns them for reading. The account stays. Afterwards, Places
// of p are invalid.
func (p *Profile) TakeStacks() *Profile {
	taken := &Profile{Meta: p.Meta, tree: p.tree, funcs: p.funcs, guesses: p.guesses.copy(), guessed: p.guessed}
	empty := NewSize(p.maxNodes)
	p.tree, p.funcs, p.labels, p.guessed, p.path, p.cuts = empty.tree, empty.funcs, empty.labels, empty.guessed, nil, 0
	return taken
}

// Add counts a stack n times; see AddTimed.
func (p *Profile) Add(root string, s *Stack, n int64) { p.AddTimed(root, s, n, 0) }

// AddTimed counts a stack n times, with the CPU time that its thread had used. A root that is not empty (the name of
// the thread) becomes the outermost frame. If the stack does not reach its thread's root, the next frame says why.
// Adding a stack whose frames are all known allocates nothing. AddTimed keeps the stack's Funcs, but not the stack
// itself.
func (p *Profile) AddTimed(root string, s *Stack, n int64, cpu time.Duration) {
	if n > 0 {
		p.AddAt(root, s, n, cpu)
	}
}

// SetTime sets how much CPU time has no stack, under a frame that says why.
func (p *Profile) SetTime(why string, cpu time.Duration) {
	p.tree.at(p.own(0, p.label(why))).self[CPUTime.slot()] = int64(cpu)
}

// Lose counts n looks that gave no stack at all.
func (p *Profile) Lose(why Reason, n int64) {
	if n > 0 {
		p.Counts.lose(why, n)
	}
}

// Nodes returns the size of the tree without its root.
func (p *Profile) Nodes() int { return int(p.tree.size) - 1 }

// cursor walks down the tree from the root, and makes missing nodes.
type cursor struct {
	p        *Profile
	node     int32
	depth    int
	diverged bool // from the path of the last stack
	full     bool
}

// under returns a cursor at the root, or at the label above a stack.
func (p *Profile) under(root string) cursor {
	at := cursor{p: p}
	if root != "" {
		at.down(p.label(root), Gap)
	}
	return at
}

func (c *cursor) end() Place {
	c.p.path = c.p.path[:c.depth]
	if c.full {
		return Place{node: c.p.cut(c.node), full: true}
	}
	return Place{node: c.node}
}

// down goes to a node's child for a frame, and makes the child if needed. It skips the search while the stack equals
// the last one.
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
	id, ok := p.funcs.find(fn, p.maxFuncs)
	next := int32(0)
	if ok {
		next = p.child(c.node, whatOf(id, kind))
	}
	if next == 0 {
		c.full = true
		return
	}
	c.node = next
	p.path = append(p.path, step{fn, kind, next})
	c.depth++
}

// child returns the node under parent, and makes it if needed. 0: the tree is full.
func (p *Profile) child(parent int32, what uint32) int32 {
	if n := p.tree.find(parent, what); n != 0 {
		return n
	}
	if int(p.tree.size)-p.cuts >= p.maxNodes-p.maxNodes/cutShare-len(ownFrames) {
		return 0
	}
	return p.tree.add(parent, what)
}

// cut returns the node that stands for everything that is not kept below a node. If there is no room for such a node,
// cut returns that of a caller, or finally that of the root.
func (p *Profile) cut(below int32) int32 {
	id := p.must(p.full)
	for n := below; ; n = p.tree.at(n).parent {
		if cut := p.tree.find(n, whatOf(id, Gap)); cut != 0 {
			return cut
		}
		if n == 0 || p.cuts < p.maxNodes/cutShare {
			if n != 0 {
				p.cuts++
			}
			return p.tree.add(n, whatOf(id, Gap))
		}
	}
}

// own returns a node for a frame of the profile's own, and makes it if needed. There is always room for these frames.
func (p *Profile) own(parent int32, fn *Func) int32 {
	what := whatOf(p.must(fn), Gap)
	if n := p.tree.find(parent, what); n != 0 {
		return n
	}
	return p.tree.add(parent, what)
}

// must returns the number of a frame of the profile's own.
func (p *Profile) must(fn *Func) int32 {
	id, _ := p.funcs.find(fn, maxFuncs+len(ownFrames))
	return id
}

// label makes the frame for a root's text, once for each text.
func (p *Profile) label(root string) *Func {
	return Cached(p.labels, maxIdentities, root, func() *Func { return &Func{Name: root} })
}

func (p *Profile) reason(r Reason) *Func {
	if r < NumReasons {
		return p.reasons[r]
	}
	return p.reasons[Other]
}
