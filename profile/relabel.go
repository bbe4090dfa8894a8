package profile

// Relabel gives all stacks that were added under one root another one: of a thread whose name was learnt late. Places
// among them stay valid where nothing was added under the new root before.
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

// merge moves what was counted at and below a node to the same places below another. The nodes stay, with nothing in
// them.
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
		for slot := range nd.self {
			target.self[slot] += nd.self[slot]
			nd.self[slot] = 0
		}
	}
}

// rename makes another frame of a node. The index keeps its old place, too, where nobody finds it.
func (t *tree) rename(n int32, what uint32) {
	t.at(n).what = what
	if t.stale++; int(t.size)+t.stale > len(t.index)/4*3 {
		t.grow()
	} else {
		t.enter(n)
	}
}
