package output

import "goprof/profile"

// TreeOf is the tree that ParseCollapsed makes of what Collapsed writes of a profile.
func TreeOf(p *profile.Profile) (*Tree, error) {
	b := newParser()
	var last []string
	var nodes []int32 // of its labels
	var failed error
	p.EachLine(Label, func(path []string, n int64) {
		if failed != nil || n <= 0 {
			return
		}
		same := 0
		for same < min(len(path), len(nodes)) && path[same] == last[same] {
			same++
		}
		nodes = nodes[:same]
		at := int32(0)
		if same > 0 {
			at = nodes[same-1]
		}
		for _, label := range path[same:] {
			if at, failed = b.child(at, []byte(label)); failed != nil {
				return
			}
			nodes = append(nodes, at)
		}
		last = append(last[:0], path...)
		b.tree.Nodes[at].Self += n
		b.tree.Total += n
		b.tree.Stacks++
	})
	b.tree.Weight = p.Meta.Weight
	return b.tree, failed
}
