package output

// growth adds nodes to a tree. Most nodes of a tree have one child: only the children of other nodes are in a map.
type growth struct {
	tree     *Tree
	recent   []int32          // by node: the child that was last asked for, 0 if the node has none
	siblings map[uint64]int32 // parent and label -> node, if the parent has several children
}

func grow(t *Tree) growth {
	return growth{tree: t, recent: make([]int32, len(t.Nodes), cap(t.Nodes)), siblings: make(map[uint64]int32)}
}

// child returns the node of a label below another node, and makes it if needed.
func (g *growth) child(parent, label int32) int32 {
	recent := g.recent[parent]
	edge := uint64(parent)<<32 | uint64(label)
	if recent != 0 {
		if g.tree.Nodes[recent].Name == label {
			return recent
		}
		if n, ok := g.siblings[edge]; ok {
			g.recent[parent] = n
			return n
		}
	}
	n := int32(len(g.tree.Nodes))
	g.tree.Nodes = append(g.tree.Nodes, TreeNode{Parent: parent, Name: label})
	g.recent = append(g.recent, 0)
	if recent != 0 {
		g.siblings[uint64(parent)<<32|uint64(g.tree.Nodes[recent].Name)] = recent
		g.siblings[edge] = n
	}
	g.recent[parent] = n
	return n
}
