package output

import "goprof/profile"

// TreeOf returns a profile as a tree of the labels that Collapsed writes. ParseCollapsed makes the same tree from the
// collapsed file.
func TreeOf(p *profile.Profile) *Tree {
	p = p.Settled()
	b := treeBuilder{tree: &Tree{Nodes: make([]TreeNode, 1, 1024), Weight: p.Meta.Weight, Unnamed: p.Unnamed},
		labels: make(map[string]int32)}
	b.nodes = grow(b.tree)
	p.EachGuess(Label, func(path []string, n, guessed int64) {
		if at := b.add(path, n); guessed > 0 {
			if b.tree.Guessed == nil {
				b.tree.Guessed = make(map[int32]int64)
			}
			b.tree.Guessed[at] = guessed
		}
	})
	return b.tree
}

// treeBuilder makes a tree from paths. Most paths begin like the previous one.
type treeBuilder struct {
	tree   *Tree
	labels map[string]int32
	nodes  growth
	last   []string
	path   []int32 // the nodes of last
}

// add adds a path, and returns its node.
func (b *treeBuilder) add(path []string, n int64) int32 {
	same := 0
	for same < min(len(path), len(b.last)) && path[same] == b.last[same] {
		same++
	}
	b.path, b.last = b.path[:same], append(b.last[:same], path[same:]...)
	at := int32(0)
	if same > 0 {
		at = b.path[same-1]
	}
	for _, label := range path[same:] {
		at = b.child(at, label)
		b.path = append(b.path, at)
	}
	b.tree.Nodes[at].Self += n
	b.tree.Total += n
	b.tree.Stacks++
	return at
}

func (b *treeBuilder) child(parent int32, label string) int32 {
	name, ok := b.labels[label]
	if !ok {
		name = int32(len(b.tree.Labels))
		b.tree.Labels = append(b.tree.Labels, ParseLabel(label))
		b.labels[label] = name
	}
	return b.nodes.child(parent, name)
}
