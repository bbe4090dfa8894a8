package output

import "goprof/profile/naming"

// Shape says which parts of a profile are shown as one.
type Shape struct {
	HideInternal bool // runs of frames that only pass calls on: naming.Fold
	GroupThreads bool // threads of one pool: naming.Pool
}

// Shaped makes a tree with the stacks of t in another shape. Counts and leaves stay.
func (t *Tree) Shaped(s Shape) *Tree {
	if s == (Shape{}) {
		return t
	}
	m := shaper{from: t, what: make([]naming.Plumbing, len(t.Labels)), label: make([]int32, len(t.Labels)),
		texts: make(map[string]int32), children: make(map[uint64]int32),
		to: &Tree{Nodes: make([]TreeNode, 1, len(t.Nodes)), Total: t.Total, Weight: t.Weight, Unnamed: t.Unnamed}}
	for i, l := range t.Labels {
		if s.HideInternal {
			m.what[i] = plumbingOf(l)
		}
		m.label[i] = m.newLabel(l)
		if s.GroupThreads && l.Kind == LabelThread {
			m.label[i] = m.labelOf(Name{naming.PoolLabel(l.Text), LabelThread})
		}
	}
	for n := range t.Nodes {
		if t.Nodes[n].Self != 0 {
			m.add(int32(n))
		}
	}
	return m.to
}

// plumbingOf is the sort of a label's frame, as far as a file tells.
func plumbingOf(l Name) naming.Plumbing {
	switch {
	case l.Kind.Java():
		return naming.PlumbingOf(l.Text)
	case l.Kind == LabelThread:
		return naming.Label
	case l.Kind == LabelTruncated || l.Kind == LabelState || l.Kind == LabelFolded:
		return naming.NoPlumbing
	}
	return naming.NativePlumbingOf(l.Text)
}

// shaper makes one tree of another.
type shaper struct {
	from, to *Tree
	what     []naming.Plumbing // of from's labels
	label    []int32           // of from's labels, in to
	texts    map[string]int32  // of the labels that to has and from lacks
	children map[uint64]int32  // of to: parent and label -> node

	// stack is the stack that is being added, root first: labels of from.
	stack    []int32
	plumbing []naming.Plumbing
}

// add adds the stack that ends in a node.
func (m *shaper) add(leaf int32) {
	m.stack, m.plumbing = m.stack[:0], m.plumbing[:0]
	for n := leaf; n != 0; n = m.from.Nodes[n].Parent {
		m.stack = append(m.stack, m.from.Nodes[n].Name)
	}
	for i, j := 0, len(m.stack)-1; i < j; i, j = i+1, j-1 {
		m.stack[i], m.stack[j] = m.stack[j], m.stack[i]
	}
	for _, l := range m.stack {
		m.plumbing = append(m.plumbing, m.what[l])
	}
	at := int32(0)
	state := m.from.Labels[m.stack[len(m.stack)-1]].Kind == LabelState // a state is no code: the leaf is below it
	if state {
		m.plumbing = m.plumbing[:len(m.plumbing)-1]
	}
	naming.Fold(m.plumbing, func(i int) {
		at = m.child(at, m.label[m.stack[i]])
	}, func(_ int, what naming.Plumbing) {
		at = m.child(at, m.labelOf(Name{what.String(), LabelFolded}))
	})
	if state {
		at = m.child(at, m.label[m.stack[len(m.stack)-1]])
	}
	if m.to.Nodes[at].Self == 0 {
		m.to.Stacks++
	}
	m.to.Nodes[at].Self += m.from.Nodes[leaf].Self
}

func (m *shaper) newLabel(l Name) int32 {
	m.to.Labels = append(m.to.Labels, l)
	return int32(len(m.to.Labels) - 1)
}

func (m *shaper) labelOf(l Name) int32 {
	i, ok := m.texts[l.Text]
	if !ok {
		i = m.newLabel(l)
		m.texts[l.Text] = i
	}
	return i
}

func (m *shaper) child(parent, label int32) int32 {
	edge := uint64(parent)<<32 | uint64(label)
	n, ok := m.children[edge]
	if !ok {
		n = int32(len(m.to.Nodes))
		m.to.Nodes = append(m.to.Nodes, TreeNode{Parent: parent, Name: label})
		m.children[edge] = n
	}
	return n
}
