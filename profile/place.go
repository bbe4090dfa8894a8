package profile

import "time"

// Place is where in a profile a stack was added. With its Place, a stack can be counted again without its frames.
type Place struct {
	node int32
	why  Reason
	sure Certainty // of the leaf
	in   *Func     // the compiled method in which the leaf is a guess, or nil
	full bool
}

// AddAt is AddTimed, but returns the place of the stack. n may be 0.
func (p *Profile) AddAt(root string, s *Stack, n int64, d time.Duration) Place {
	at := p.under(root)
	if s.Truncated != Whole {
		at.down(p.reason(s.Truncated), Gap)
	}
	for i := len(s.Frames) - 1; i >= 0; i-- {
		at.down(s.Frames[i].Func, s.Frames[i].Kind)
	}
	place := at.end()
	place.why = s.Truncated
	if len(s.Frames) > 0 {
		place.sure = s.Frames[0].Sure
	}
	place.in = s.Guessed()
	p.Again(place, n, d)
	return place
}

// Again adds n to the count of the stack at a place. n may be negative, if the stack was counted too often.
func (p *Profile) Again(at Place, n int64, d time.Duration) {
	if at.node >= p.tree.size {
		return // a place in another profile
	}
	p.Counts.add(at.why, n)
	p.Sure[min(at.sure, NumCertainty-1)] += n
	p.guesses.Add(at.in, n)
	nd := p.tree.at(at.node)
	nd.self[Samples.slot()] += n
	nd.self[CPUTime.slot()] += int64(d)
	p.Time += d
	if at.full {
		p.Overflow += n
	} else if at.in != nil {
		guessed := p.guessed[at.node]
		guessed[Samples.slot()] += n
		guessed[CPUTime.slot()] += int64(d)
		p.guessed[at.node] = guessed
	}
}

// StackAt appends the frames of a place to frames, leaf first. They only have functions and kinds, because a profile
// has no lines. rooted: the stack was added under a root. StackAt leaves out that root.
func (p *Profile) StackAt(at Place, rooted bool, frames []Frame) Stack {
	s := Stack{Frames: frames, Truncated: at.why}
	if at.node >= p.tree.size {
		return s
	}
	for n := at.node; n != 0; n = p.tree.at(n).parent {
		nd := p.tree.at(n)
		s.Frames = append(s.Frames, Frame{Func: p.funcs.list[nd.fn()], Kind: nd.kind(), BCI: -1})
	}
	above := 0
	if rooted {
		above++
	}
	if at.why != Whole {
		above++ // skip the frame that says so
	}
	s.Frames = s.Frames[:max(len(s.Frames)-above, len(frames))]
	if len(s.Frames) > len(frames) {
		s.Frames[len(frames)].Sure = at.sure
	}
	return s
}

// Beside returns the place of the same stack with another leaf.
func (p *Profile) Beside(at Place, leaf *Func, kind Kind) Place {
	if at.full || at.node <= 0 || at.node >= p.tree.size {
		return at
	}
	parent := p.tree.at(at.node).parent
	if id, ok := p.funcs.find(leaf, p.maxFuncs); ok {
		if n := p.child(parent, whatOf(id, kind)); n != 0 {
			return Place{node: n, why: at.why}
		}
	}
	return Place{node: p.cut(parent), why: at.why, full: true}
}

// Above returns the place of the same stack with more frames on top of its leaf, leaf first. The leaf's certainty
// stays.
func (p *Profile) Above(at Place, frames []Frame) Place {
	if at.full || at.node <= 0 || at.node >= p.tree.size {
		return at
	}
	for i := len(frames) - 1; i >= 0; i-- {
		below := at.node
		if id, ok := p.funcs.find(frames[i].Func, p.maxFuncs); ok {
			at.node = p.child(below, whatOf(id, frames[i].Kind))
		}
		if at.node == 0 || at.node == below {
			at.node, at.full = p.cut(below), true
			break
		}
	}
	return at
}

// Count counts a stack n times in the account, without adding it to the tree.
func (p *Profile) Count(s *Stack, n int64, d time.Duration) {
	sure := Certainty(0)
	if len(s.Frames) > 0 {
		sure = min(s.Frames[0].Sure, NumCertainty-1)
	}
	p.Counts.add(s.Truncated, n)
	p.Sure[sure] += n
	p.guesses.Add(s.Guessed(), n)
	p.Time += d
}
