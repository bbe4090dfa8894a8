package profile

// Relabel moves all stacks under one root to another root, for a thread whose name became known late. Their Places stay
// valid if nothing was under the new root before.
func (p *Profile) Relabel(old, root string) {
	from, known := p.labels[old]
	if !known || old == root {
		return
	}
	id, ok := p.funcs.find(from, p.maxFuncs)
	n := int32(0)
	if ok {
		n = p.tree.find(0, whatOf(id, Gap))
	}
	id, ok = p.funcs.find(p.label(root), p.maxFuncs)
	if n == 0 || !ok {
		return
	}
	p.path = p.path[:0]
	if to := p.tree.find(0, whatOf(id, Gap)); to != 0 {
		p.merge(n, to)
		return
	}
	p.tree.rename(n, whatOf(id, Gap))
}

// merge moves all counts of a node and its subtree to the same places below another node. The old nodes stay, but are
// empty.
func (p *Profile) merge(from, to int32) {
	moved := map[int32]int32{from: to}
	for n := from; n < p.tree.size; n++ { // a node comes after its parent
		at, ok := moved[n]
		if !ok {
			parent, below := moved[p.tree.at(n).parent]
			if !below {
				continue
			}
			if at = p.child(parent, p.tree.at(n).what); at == 0 {
				at = p.cut(parent)
			}
			moved[n] = at
		}
		nd, target := p.tree.at(n), p.tree.at(at)
		guessed, some := p.guessed[n]
		moves := p.guessed[at]
		for slot := range nd.self {
			target.self[slot] += nd.self[slot]
			nd.self[slot] = 0
			moves[slot] += guessed[slot]
		}
		if some {
			p.guessed[at] = moves
			delete(p.guessed, n)
		}
	}
}

// rename gives a node another frame. The node's old entry stays in the index, but no search finds it.
func (t *tree) rename(n int32, what uint32) {
	t.at(n).what = what
	if t.stale++; int(t.size)+t.stale > len(t.index)/4*3 {
		t.grow()
	} else {
		t.enter(n)
	}
}
