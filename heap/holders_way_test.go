package heap

import (
	"testing"

	"goprof/profile"
)

// TestLongWays draws 4,096 elements of a linked list of 200,000. Each step is processed once. A way has few links, even
// if two references alternate.
func TestLongWays(t *testing.T) {
	const length, drawn = 200_000, 4096
	root := profile.HeapLink{Kind: profile.LinkStatic, Class: "shop.Cache", Field: "list"}
	links := []profile.HeapLink{root, {Kind: profile.LinkField, Class: "shop.Node", Field: "next"},
		{Kind: profile.LinkField, Class: "shop.Other", Field: "next"}}
	for turns := range int32(2) {
		c := &climb{t: &heldClasses{links: links}, number: map[uint64]int32{},
			reach: &reach{all: make([]reached, 1, length+1), index: map[uint64]int32{}}}
		for at := int32(1); at <= length; at++ {
			addr := uint64(at) * 16
			r := reached{addr: addr, klass: 8, slot: addr - 8, up: at - 1, link: 1 + turns*(at%2)}
			if at == 1 {
				r.link = 0
			}
			c.reach.index[addr] = at
			c.reach.all = append(c.reach.all, r)
		}
		for i := range uint64(drawn) {
			c.node(16*(length-i*length/drawn), 8)
		}
		// One more object holds the end of the list but was not reached from a root. Another object has no holder.
		c.nodes = append(c.nodes, held{addr: 1, up: 0, end: 0, root: -1, any: 0}, held{addr: 2, up: -1, root: -1, any: -1})
		c.refs = []holding{{holder: 0, held: drawn, link: 1, slot: 77}}
		c.beginWays()
		sum := 0
		for n := range int32(drawn + 1) {
			w := c.wayOf(n)
			sum += len(w.links)
			if last := w.links[len(w.links)-1]; w.lacks != "" || w.root != 8 || last != root {
				t.Fatalf("way %d ends at %d, %+v: %q", n, w.root, last, w.lacks)
			}
		}
		if w := c.wayOf(drawn + 1); w.lacks != profile.NoHolder || len(w.links) > 0 {
			t.Errorf("%+v", w)
		}
		if len(c.order) != length+drawn+2 {
			t.Errorf("%d steps are to be proven", len(c.order))
		}
		seen := map[int32]bool{0: true}
		for _, at := range c.order {
			if up := c.step(at).up; !seen[up] || seen[at] {
				t.Fatalf("step %d comes twice, or before %d", at, up)
			}
			seen[at] = true
		}
		w := c.wayOf(drawn)
		if turns == 0 && (sum > 2*(drawn+1) || len(w.links) != 2 || w.links[0].Times != length) {
			t.Errorf("%d links, %+v", sum, w.links)
		}
		if turns == 1 && (sum > (maxLinks+2)*(drawn+1) || len(w.links) != maxLinks+2 ||
			w.links[maxLinks].Kind != profile.LinkMore) {
			t.Errorf("%d links, %d of one way", sum, len(w.links))
		}
	}
}

// TestClimbEnds: if no level was searched, an object without a holder does not count as garbage.
func TestClimbEnds(t *testing.T) {
	cancel := make(chan struct{})
	close(cancel)
	c := &climb{t: &heldClasses{}, opt: Options{Cancel: cancel}, nodes: []held{{up: -1, any: -1, below: -1, root: -1}}}
	c.run()
	nothing := &profile.HeapHolder{Missing: profile.NoHolder}
	if c.part != 0 || !c.open(nothing) {
		t.Errorf("%v was looked through", c.part)
	}
	if c.part, c.cut = 1, []string{"stacks"}; !c.open(nothing) {
		t.Error("not all stacks were looked through, but nothing is open")
	}
	if c.cut = nil; c.open(nothing) {
		t.Error("an object is open though all was looked through")
	}
}
