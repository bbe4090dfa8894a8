package profile

import (
	"maps"
	"slices"
)

// For a guessed leaf, only the compiled method is certain, not which of its inlined methods ran. Nearly one guess in
// two is wrong (docs/evidence/accuracy.md, Guesses), and wrong guesses in one compiled method may all be of one inlined
// method. So if a compiled method has guessed leaves in GuessedMuch of all samples, they count for that method.

// GuessedMuch: guesses in one compiled method do not count if they are at least this share of all samples. Half of the
// guesses may be wrong. That is five points, as much as chance moves a share of few samples (fairSamples).
const GuessedMuch = 0.10

// GuessedIn returns the index of the compiled method in which the leaf is a guess. It is -1 if the leaf is not a guess.
// Frames of HotSpot's own code, or of a thread's state, may be above the leaf.
func (s *Stack) GuessedIn() int {
	if len(s.Frames) == 0 || s.Frames[0].Sure != Guessed {
		return -1
	}
	in := s.firstJava()
	for in < len(s.Frames)-1 && s.Frames[in].Kind == Inlined {
		in++
	}
	return in
}

// Guessed returns the compiled method in which the leaf is a guess. It is nil if the leaf is not a guess.
func (s *Stack) Guessed() *Func {
	if in := s.GuessedIn(); in >= 0 {
		return s.Frames[in].Func
	}
	return nil
}

func (s *Stack) firstJava() (first int) {
	for first < len(s.Frames)-1 && !s.Frames[first].Kind.Java() {
		first++
	}
	return first
}

// Settle replaces a guessed leaf with its compiled method.
func (s *Stack) Settle() {
	in := s.GuessedIn()
	if in < 0 {
		return
	}
	first := s.firstJava()
	s.Frames = slices.Delete(s.Frames, first, in)
	s.Frames[0].Sure, s.Frames[first].Sure = Certain, Certain
	if s.Carrier > 0 {
		s.Carrier -= in - first
	}
}

// Guesses counts guessed leaves by the compiled method that they are in. The zero value is empty.
type Guesses struct {
	of  map[Func]int64
	all int64 // samples, guessed or not
}

// Add counts n samples. in is the result of Stack.Guessed: nil if the leaf is not a guess.
func (g *Guesses) Add(in *Func, n int64) {
	g.all += n
	if in == nil {
		return
	}
	if g.of == nil {
		g.of = make(map[Func]int64)
	}
	if _, known := g.of[*in]; known || len(g.of) < maxFuncs {
		g.of[*in] += n
	}
}

// Most returns the number of guesses in the compiled method with the most guesses.
func (g *Guesses) Most() (most int64) {
	for _, n := range g.of {
		most = max(most, n)
	}
	return most
}

// Any reports whether a compiled method has guesses that do not count.
func (g *Guesses) Any() bool { return g.all > 0 && g.many(g.Most()) }

func (g *Guesses) many(n int64) bool { return float64(n) >= GuessedMuch*float64(g.all) }

// Much reports whether the guesses in a compiled method are so many that they count for the method itself.
func (g *Guesses) Much(in *Func) bool {
	return in != nil && g.all > 0 && g.many(g.of[*in])
}

func (g *Guesses) copy() Guesses { return Guesses{maps.Clone(g.of), g.all} }

// Settled returns the profile as it should be shown: if a compiled method has many guesses, they count for the method
// itself. It returns p if nothing changes. Otherwise it returns a copy to which nothing can be added.
func (p *Profile) Settled() *Profile {
	var nodes []int32
	for n := range p.guessed {
		if p.guesses.Much(p.funcs.list[p.tree.at(p.compiled(n)).fn()]) {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return p
	}
	slices.Sort(nodes)
	c := p.Copy()
	links := c.links()
	for _, n := range nodes {
		to := c.compiled(n)
		for _, what := range c.above(n) {
			to = c.below(&links, to, what)
		}
		from, target := c.tree.at(n), c.tree.at(to)
		for slot, count := range c.guessed[n] {
			from.self[slot] -= count
			target.self[slot] += count
		}
		c.Unnamed += c.guessed[n][c.Meta.Weight.slot()]
		delete(c.guessed, n)
	}
	return c
}

// compiled returns the compiled method in which the leaf at a node is a guess.
func (p *Profile) compiled(n int32) int32 {
	for parent := p.tree.at(n).parent; parent != 0 && !p.tree.at(n).kind().Java(); parent = p.tree.at(n).parent {
		n = parent
	}
	for parent := p.tree.at(n).parent; parent != 0 && p.tree.at(n).kind() == Inlined; parent = p.tree.at(n).parent {
		n = parent
	}
	return n
}

// above returns the frames between the topmost Java method of a leaf's stack and the leaf, lowest first.
func (p *Profile) above(n int32) (whats []uint32) {
	for n != 0 && !p.tree.at(n).kind().Java() {
		whats = append(whats, p.tree.at(n).what)
		n = p.tree.at(n).parent
	}
	if n == 0 {
		return nil // no Java method: the leaf stays
	}
	slices.Reverse(whats)
	return whats
}

// below returns a child in a tree without an index, and makes it if needed.
func (p *Profile) below(l *links, parent int32, what uint32) int32 {
	for n := l.first[parent]; n != 0; n = l.next[n] {
		if p.tree.at(n).what == what {
			return n
		}
	}
	n := p.tree.push(node{parent: parent, what: what})
	l.next, l.first = append(l.next, l.first[parent]), append(l.first, 0)
	l.first[parent] = n
	return n
}
