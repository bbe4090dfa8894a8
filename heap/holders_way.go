package heap

import (
	"cmp"
	"slices"

	"goprof/process"
	"goprof/profile"
)

// Ways have common ends, and a way through a linked list has a step for each element. So the remaining way is stored
// once for each step.

// maxLinks bounds the links of a way, not counting the root.
const maxLinks = 64

// way is a chain of references from a root to an object.
type way struct {
	links []profile.HeapLink
	root  uint64 // distinguishes roots
	lacks string // HeapHolder.Missing
	again bool   // another search may succeed
	at    int32  // its first step; 0: none
}

// wayStep leads from an object to its holder. A step's number is positive for a node of the climb, and negative for an
// object that was reached from a root.
type wayStep struct {
	addr, klass uint64 // klass is 0 if not known
	slot        uint64 // the address of the reference; 0: not in the heap
	link        int32  // -1: none
	up          int32  // 0: link is a root, or nothing is known
}

func (c *climb) step(at int32) wayStep {
	if at < 0 {
		r := &c.reach.all[-at]
		return wayStep{r.addr, r.klass, r.slot, r.link, -r.up}
	}
	n := &c.nodes[at-1]
	s := wayStep{addr: n.addr, klass: n.klass, link: n.root, up: -n.end}
	if n.up >= 0 {
		ref := &c.refs[n.up]
		s.slot, s.link, s.up = ref.slot, ref.link, ref.holder+1
	}
	return s
}

// stretch is the next part of a way: one reference, repeated times times.
type stretch struct {
	link, times int32
	next        int32 // the step after it; 0: none
	top         int32 // the last step of the way
}

func (c *climb) beginWays() {
	c.ways, c.order = make([]stretch, len(c.reach.all)+len(c.nodes)+1), nil
}

// place is a step's index in lists that have an entry for each step.
func (c *climb) place(at int32) int { return int(at) + len(c.reach.all) }

// stretch returns the stretch of a step. First it makes the missing stretches of the steps above. There is no cycle,
// because once a step has a way, the step above it never changes.
func (c *climb) stretch(at int32) stretch {
	begun := len(c.order)
	for up := at; up != 0 && c.ways[c.place(up)].top == 0; up = c.step(up).up {
		c.order = append(c.order, up)
	}
	slices.Reverse(c.order[begun:])
	for _, at := range c.order[begun:] {
		s := c.step(at)
		way := stretch{link: s.link, times: 1, next: s.up, top: at}
		if s.up != 0 {
			above := c.ways[c.place(s.up)]
			way.top = above.top
			if s.link < 0 { // the same object
				way = above
			} else if s.link == above.link {
				way.times, way.next = above.times+1, above.next
			}
		}
		c.ways[c.place(at)] = way
	}
	return c.ways[c.place(at)]
}

// wayOf returns the way from an object to a root, or as much of the way as is known.
func (c *climb) wayOf(n int32) way {
	w := way{at: n + 1}
	s := c.stretch(w.at)
	if node := &c.nodes[n]; !node.rooted() {
		w.lacks = profile.NoHolder
		if node.any >= 0 {
			w.lacks = profile.HolderFar
			w.links = append(w.links, c.t.links[c.refs[node.any].link])
		}
		return w
	}
	for {
		if len(w.links) == maxLinks && s.next != 0 {
			w.links = append(w.links, profile.HeapLink{Kind: profile.LinkMore})
			s = c.stretch(s.top)
		}
		l := c.t.links[s.link]
		if s.times > 1 {
			l.Times = int(s.times)
		}
		if w.links = append(w.links, l); s.next == 0 {
			break
		}
		s = c.stretch(s.next)
	}
	top := c.step(s.top)
	w.root = cmp.Or(top.slot, top.addr)
	return w
}

// prove reads the reference of each step again. It returns, by place, the steps whose objects have moved, and the steps
// that no longer lead to a root.
func (c *climb) prove() (moved, broken []bool) {
	moved, broken = make([]bool, len(c.ways)), make([]bool, len(c.ways))
	const batch = 1 << 9
	raw, width := make([]byte, batch*32), c.t.heap.RefSize()
	for todo := c.order; len(todo) > 0; {
		n := min(len(todo), batch)
		ranges := make([]process.Range, 0, 2*n)
		for i, at := range todo[:n] {
			s, b := c.step(at), raw[32*i:]
			ranges = append(ranges, process.Range{Addr: s.addr, Buf: b[:16]},
				process.Range{Addr: cmp.Or(s.slot, s.addr), Buf: b[16 : 16+width]})
		}
		c.t.heap.ReadMany(ranges)
		for i, at := range todo[:n] {
			s, own, ref, k := c.step(at), &ranges[2*i], &ranges[2*i+1], c.place(at)
			moved[k] = s.klass != 0 && (!own.OK || c.t.heap.KlassIn(own.Buf) != s.klass)
			broken[k] = moved[k] || s.slot != 0 && (!ref.OK || c.t.heap.RefTo(ref.Buf) != s.addr) ||
				s.up != 0 && broken[c.place(s.up)]
		}
		todo = todo[n:]
	}
	return moved, broken
}
