package diff

import "slices"

// A leaf that is a guess counts for the compiled method, because it may belong to any method that is inlined there. The
// same code always divides its guesses among the methods in the same way. So if both sides have the same number of
// guesses, the guesses change nothing. If a compiler decides differently, certain leaves become guesses, or guesses
// become certain. So a change has a range: its certain part, plus or minus the difference in the number of guesses.
// diff judges the smallest change in that range.

// moved is how much guesses may have changed an item's share, up and down.
type moved struct{ up, down float64 }

func (it *items) guesses() {
	t, keys := it.tree, int32(len(it.names))
	if !slices.ContainsFunc(t.nodes, func(n node) bool { return n.guessed != [sides]int64{} }) {
		return
	}
	var total [sides]float64
	of := make(map[int32]*compiled) // by label
	for n := int32(1); n < int32(len(t.nodes)); n++ {
		nd, top := &t.nodes[n], n // top is the compiled method
		for s := range sides {
			total[s] += float64(nd.self[s])
		}
		for t.nodes[top].inlined && t.nodes[top].parent != 0 {
			top = t.nodes[top].parent
		}
		c := of[t.nodes[top].label]
		if c == nil {
			c = &compiled{key: it.keys[top], methods: make(map[int32]bool)}
			of[t.nodes[top].label] = c
		}
		for s := range sides {
			c.guessed[s] += float64(nd.guessed[s])
		}
		if top != n {
			c.methods[it.keys[n]] = true
			c.paths = append(c.paths, path{2*keys + n, top})
		}
	}
	for _, c := range of {
		for _, p := range c.paths {
			it.may(p.number, more([sides]float64{float64(t.nodes[p.top].guessed[Before]),
				float64(t.nodes[p.top].guessed[After])}, total))
		}
		by := more(c.guessed, total)
		delete(c.methods, c.key) // with keys such as the class, they are already counted
		for key := range c.methods {
			it.may(key, by)
			it.may(keys+key, by)
		}
		if len(c.methods) > 0 {
			it.may(c.key, moved{by.down, by.up})
		}
	}
}

// compiled is a compiled method: its guesses, and the keys and paths of the methods inlined into it.
type compiled struct {
	key     int32
	guessed [sides]float64
	methods map[int32]bool
	paths   []path
}

// path is the item of an inlined method's node, and the node of the compiled method.
type path struct{ number, top int32 }

// more returns how much a method's share may have changed because the share of guesses changed.
func more(guessed, total [sides]float64) (m moved) {
	if total[Before] > 0 && total[After] > 0 {
		by := guessed[After]/total[After] - guessed[Before]/total[Before]
		m.up, m.down = max(by, 0), max(-by, 0)
	}
	return m
}

func (it *items) may(number int32, by moved) {
	if p := it.place[number]; p >= 0 {
		it.list[p].guesses.up += by.up
		it.list[p].guesses.down += by.down
	}
}

// least returns both shares. It counts the guesses so that the change is smallest.
func (e *evidence) least() (before, after float64) {
	before, after = e.share(Before), e.share(After)
	if after > before {
		return before, max(after-e.item.guesses.down, before)
	}
	return before, min(after+e.item.guesses.up, before)
}

// byGuesses is the part of the change that guesses may explain.
func (e *evidence) byGuesses() float64 {
	before, after := e.least()
	change := e.change()
	return max(change, -change) - max(after-before, before-after)
}
