package heap

import (
	"math/rand/v2"
	"slices"
	"time"

	"goprof/profile"
	"goprof/vmstructs"
)

const (
	// maxLevels is the largest number of references that goprof follows from a drawn object towards a root.
	maxLevels = 10
	// holdersEach is the number of holders of an object that are kept.
	holdersEach = 8
	// maxFrontier bounds the objects of one level whose holders are searched. maxHeld bounds those of all levels.
	maxFrontier, maxHeld = 1 << 16, 1 << 19
	// climbUnit is the number of bytes of the heap that are searched at once.
	climbUnit = 1 << 20
)

// held is a drawn object, or one that holds a drawn object.
type held struct {
	addr, klass uint64
	up          int32 // the reference that leads towards a root
	any         int32 // the first reference to it that was found
	below       int32 // the last of the references by which it holds others
	count       int32
	end         int32 // its number among the objects that were reached from roots
	root        int32 // the link of the root that holds it directly
}

// rooted reports whether a way from the object to a root is known.
func (n *held) rooted() bool { return n.up >= 0 || n.end > 0 || n.root >= 0 }

// holding is a reference from one held object to another.
type holding struct {
	holder, held, link int32
	next               int32 // the next holding by the same holder
	slot               uint64
}

// climb looks for holders level by level. One search of the heap finds all references to the objects of a level.
type climb struct {
	t      *heldClasses
	reach  *reach
	opt    Options
	rand   *rand.Rand
	nodes  []held
	number map[uint64]int32
	refs   []holding
	buf    []byte
	hits   []hit
	ways   []stretch        // by place
	order  []int32          // the steps of all ways. A step follows the step above it
	tail   vmstructs.Object // the object that continues after the last unit
	// part is the smallest share of the heap that was searched for any level.
	part float64
	cut  []string // notes of searches of some level that were not complete
}

// hit is a word in the heap that has the address of a sought object.
type hit struct {
	slot uint64
	of   int32
}

// newClimb follows references from the roots until over returns true. It returns a climb that ends at the objects that
// it has reached.
func newClimb(t *heldClasses, opt Options, rand *rand.Rand, over func() bool) *climb {
	c := &climb{t: t, opt: opt, rand: rand, number: map[uint64]int32{}, buf: make([]byte, climbUnit)}
	c.reach = reachFromRoots(t, func() bool { return over() || c.cancelled() })
	return c
}

// find looks for a way from a root to each sampled object without a proven way. left is the number of ways that could
// not be proven although their objects have not moved.
func (c *climb) find(samples []sample) (left int) {
	var todo []*drawn
	for i := range samples {
		for k := range samples[i].list {
			if o := &samples[i].list[k]; o.way.lacks == "" && o.way.links == nil || o.way.again {
				c.node(o.addr, o.klass)
				todo = append(todo, o)
			}
		}
	}
	c.run()
	c.beginWays()
	for _, o := range todo {
		o.way = way{lacks: profile.NoHolder}
		if n, ok := c.number[o.addr]; ok {
			o.way = c.wayOf(n)
		}
	}
	moved, broken := c.prove()
	for _, o := range todo {
		if at := o.way.at; at != 0 && broken[c.place(at)] {
			o.way = way{lacks: profile.HolderUncertain, again: !moved[c.place(at)]}
			if o.way.again {
				left++
			}
		}
	}
	return left
}

// node returns the number of an object's node. If there is none, it adds one.
func (c *climb) node(addr, klass uint64) int32 {
	n, ok := c.number[addr]
	if !ok {
		if len(c.nodes) >= maxHeld {
			return -1
		}
		n = int32(len(c.nodes))
		c.number[addr] = n
		c.nodes = append(c.nodes, held{addr: addr, klass: klass, up: -1, any: -1, below: -1, root: -1,
			end: c.reach.index[addr]})
	}
	return n
}

// run climbs until all ways end.
func (c *climb) run() {
	c.part = 1
	for level, from := 0, 0; level < maxLevels; level++ {
		var frontier []int32
		for n := from; n < len(c.nodes); n++ {
			if !c.nodes[n].rooted() {
				frontier = append(frontier, int32(n))
			}
		}
		if from = len(c.nodes); len(frontier) == 0 {
			return
		} else if c.cancelled() {
			c.part = 0 // of this level
			return
		}
		c.rand.Shuffle(len(frontier), func(i, k int) { frontier[i], frontier[k] = frontier[k], frontier[i] })
		c.level(frontier[:min(len(frontier), maxFrontier)])
	}
}

func (c *climb) cancelled() bool {
	select {
	case <-c.opt.Cancel:
		return true
	default:
		return false
	}
}

// level finds all references to the objects of frontier, in the heap and on the stacks of threads. It ends early when
// its time is over (Options).
func (c *climb) level(frontier []int32) {
	addrs := make([]uint64, len(frontier))
	for i, n := range frontier {
		addrs[i] = c.nodes[n].addr
	}
	sought := c.t.heap.NewSought(addrs)
	until := time.Now().Add(c.opt.Time)
	if c.opt.All {
		until = until.Add(24 * time.Hour)
	}
	c.pass(sought, frontier, until)
	whole := onStacks(c.t, sought, until, func(object, link int32) {
		if n := frontier[object]; c.nodes[n].any < 0 && !c.nodes[n].rooted() {
			c.nodes[n].root = link
			c.tellBelow(n)
		}
	})
	if !whole {
		c.note("not all stacks of threads were looked through")
	}
	if sought.Partly {
		c.note("not all of ZGC's tables of moved objects could be read: references to these may be missing")
	}
}

func (c *climb) note(text string) {
	if !slices.Contains(c.cut, text) {
		c.cut = append(c.cut, text)
	}
}

// pass searches the heap. If the heap is too large, pass searches the long arrays near to roots, such as the tables of
// maps, and random pieces.
func (c *climb) pass(sought *vmstructs.Sought, frontier []int32, until time.Time) {
	areas, _, err := c.t.heap.Areas()
	if err != nil {
		c.part = 0
		return
	}
	over := func() bool { return time.Now().After(until) || c.cancelled() }
	all, looked, left := total(areas), uint64(0), c.opt.Bytes
	whole := c.opt.All || all <= c.opt.Bytes
	draw := inOrder(areas)
	if !whole {
		draw = drawPieces(c.rand, areas)
		left -= min(left, c.longArrays(sought, frontier, left/2, over)) // longArrays may read one piece more than this
	}
	for looked < left || c.opt.All {
		a, from, to, ok := draw()
		if !ok || over() {
			break
		}
		b := c.buf[:min(to-from, climbUnit)]
		if c.t.heap.Bytes(from, b) == nil {
			looked += uint64(len(b))
			c.unit(sought, frontier, a, from, b, whole)
		}
	}
	if all > 0 {
		c.part = min(c.part, float64(looked)/float64(all))
	}
}

// longArrays searches long arrays that were reached from roots. It returns the number of searched bytes.
func (c *climb) longArrays(sought *vmstructs.Sought, frontier []int32, most uint64, over func() bool) (looked uint64) {
	for i := range c.reach.long {
		o := &c.reach.long[i]
		end := o.Addr + o.Class.Head() + uint64(o.Length)*uint64(c.t.heap.RefSize())
		for from := o.Addr &^ 7; from < end && looked < most && !over(); from += climbUnit {
			b := c.buf[:min(end-from+7, climbUnit)&^7]
			if c.t.heap.Bytes(from, b) == nil {
				looked += uint64(len(b))
				c.take(o, c.hitsIn(sought, frontier, from, b))
			}
		}
	}
	return looked
}

// hitsIn finds the words in b that are addresses of objects of the frontier. It ignores objects that have holdersEach
// holders already.
func (c *climb) hitsIn(sought *vmstructs.Sought, frontier []int32, from uint64, b []byte) []hit {
	c.hits = c.hits[:0]
	sought.InHeap(b, func(at int, object int32) {
		if n := frontier[object]; c.nodes[n].count < holdersEach {
			c.hits = append(c.hits, hit{from + uint64(at), n})
		}
	})
	return c.hits
}

// inOrder returns a function that returns the pieces of all areas in their order.
func inOrder(areas []*vmstructs.HeapArea) func() (a *vmstructs.HeapArea, from, to uint64, ok bool) {
	i, next := 0, uint64(0)
	return func() (*vmstructs.HeapArea, uint64, uint64, bool) {
		for ; i < len(areas); i++ {
			a := areas[i]
			if from := max(next, a.Start); from < a.Top {
				next = min(from+climbUnit, a.Top)
				return a, from, next, true
			}
			next = 0
		}
		return nil, 0, 0, false
	}
}

// unit searches b, a copy of a piece of an area: first for addresses, then for the objects and fields that contain
// these. inTurn reports whether b follows the piece of the last call.
func (c *climb) unit(sought *vmstructs.Sought, frontier []int32, a *vmstructs.HeapArea, from uint64, b []byte,
	inTurn bool) {
	hits := c.hitsIn(sought, frontier, from, b)
	if a.Part == vmstructs.HumongousPart {
		var head [headBytes]byte
		if len(hits) > 0 && c.t.heap.Bytes(a.Start, head[:]) == nil {
			if o, ok := c.t.heap.ObjectIn(a.Start, head[:]); ok {
				c.take(&o, hits)
			}
		}
		return
	}
	if len(hits) == 0 && !inTurn {
		return
	}
	if tail := &c.tail; tail.Class != nil && inTurn && tail.Addr < from && tail.Addr+tail.Bytes > from {
		hits = c.take(tail, hits)
	}
	last := vmstructs.Object{}
	c.t.heap.Walk(a, from, from+uint64(len(b)), c.cancelled, func(o *vmstructs.Object) {
		hits, last = c.take(o, hits), *o
	})
	if last.Class != nil {
		c.tail = last
	}
}

// take adds the holdings of the hits in an object. It returns the hits after the object, and drops the hits before it.
func (c *climb) take(o *vmstructs.Object, hits []hit) []hit {
	for ; len(hits) > 0 && hits[0].slot < o.Addr+o.Bytes; hits = hits[1:] {
		if hits[0].slot >= o.Addr {
			c.hold(o, hits[0])
		}
	}
	return hits
}

// hold adds the holding of a hit, if the word is a reference in a field or an element.
func (c *climb) hold(o *vmstructs.Object, h hit) {
	addr, klass, link, ok := c.t.holderOf(o, h.slot)
	if !ok || addr == c.nodes[h.of].addr || c.nodes[h.of].count >= holdersEach {
		return
	}
	ref := holding{holder: -1, held: h.of, link: link, next: -1, slot: h.slot}
	if addr != 0 {
		if ref.holder = c.node(addr, klass); ref.holder < 0 {
			return
		}
		ref.next = c.nodes[ref.holder].below
		c.nodes[ref.holder].below = int32(len(c.refs))
	}
	c.refs = append(c.refs, ref)
	n, at := &c.nodes[h.of], int32(len(c.refs)-1)
	if n.count++; n.any < 0 {
		n.any = at
	}
	if !n.rooted() && (addr == 0 || c.nodes[ref.holder].rooted()) {
		n.up = at
		c.tellBelow(h.of)
	}
}

// tellBelow records the way of an object for all objects that it holds.
func (c *climb) tellBelow(n int32) {
	for todo := []int32{n}; len(todo) > 0; {
		n, todo = todo[len(todo)-1], todo[:len(todo)-1]
		for at := c.nodes[n].below; at >= 0; at = c.refs[at].next {
			if below := &c.nodes[c.refs[at].held]; !below.rooted() {
				below.up = at
				todo = append(todo, c.refs[at].held)
			}
		}
	}
}
