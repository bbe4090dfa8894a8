package diff

// A leaf that is a guess counts for the compiled method. It may be of any method that is inlined there, in this
// recording or in the other one. So a share has a range: what counts for it, and what guesses may add or take. A change
// is judged by what is left of it where guesses make it smallest: a compiler that decides otherwise in the next start
// changes which leaves are guesses, and that is no change of the program.

// guesses finds the ranges of all items.
func (it *items) guesses() {
	t := it.tree
	keys := int32(len(it.names))
	of := make(map[int32]*compiled) // by label
	for n := int32(1); n < int32(len(t.nodes)); n++ {
		nd := &t.nodes[n]
		if nd.guessed != ([sides]int64{}) {
			c := compiledOf(of, nd.label)
			c.key = it.keys[n]
			for s := range sides {
				c.guessed[s] += nd.guessed[s]
			}
		}
		top := n // the compiled method
		for t.nodes[top].inlined && t.nodes[top].parent != 0 {
			top = t.nodes[top].parent
		}
		if top == n {
			continue
		}
		compiledOf(of, t.nodes[top].label).methods[it.keys[n]] = true
		it.may(2*keys+n, &t.nodes[top].guessed, nil)
	}
	for _, c := range of {
		delete(c.methods, c.key) // by class, say: it has them anyway
		for key := range c.methods {
			it.may(key, &c.guessed, nil)
			it.may(keys+key, &c.guessed, nil)
		}
		if len(c.methods) > 0 {
			it.may(c.key, nil, &c.guessed)
		}
	}
}

// compiled is a compiled method: its guesses, and the keys of what is inlined into it.
type compiled struct {
	key     int32
	guessed [sides]int64
	methods map[int32]bool
}

func compiledOf(of map[int32]*compiled, label int32) *compiled {
	if of[label] == nil {
		of[label] = &compiled{methods: make(map[int32]bool)}
	}
	return of[label]
}

// may says that guesses may belong to an item for which they do not count, or the other way round.
func (it *items) may(number int32, gain, lose *[sides]int64) {
	p := it.place[number]
	if p < 0 {
		return
	}
	for s := range sides {
		if gain != nil {
			it.list[p].gain[s] += gain[s]
		}
		if lose != nil {
			it.list[p].lose[s] += lose[s]
		}
	}
}

// least is both shares as they are where guesses make the change smallest. They are equal where guesses may make all
// of it.
func (e *evidence) least() (before, after float64) {
	shares := [sides]float64{e.share(Before), e.share(After)}
	low, high := Before, After
	if shares[After] < shares[Before] {
		low, high = After, Before
	}
	up := min(float64(e.item.gain[low])/e.total[low], 1-shares[low])
	down := min(float64(e.item.lose[high])/e.total[high], shares[high])
	if up == 0 && down == 0 {
		return shares[Before], shares[After]
	}
	shares[low] += up
	shares[high] = max(shares[high]-down, shares[low])
	return shares[Before], shares[After]
}

// byGuesses is how much of the change guesses may have made.
func (e *evidence) byGuesses() float64 {
	change := e.change()
	before, after := e.least()
	return max(change, -change) - max(after-before, before-after)
}
