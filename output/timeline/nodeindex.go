package timeline

// nodeIndex finds nodes by their content, with open addressing, at most half full. Node 0 is never a child, so 0 marks
// an empty entry.
type nodeIndex struct{ places []int32 }

const firstPlaces = 1 << 10

// find returns the entry with a node's number. If the node is new, the entry is 0, and the caller may set it.
func (x *nodeIndex) find(nodes []Node, n Node) *int32 {
	if 2*len(nodes) >= len(x.places) {
		x.grow(nodes)
	}
	return x.place(nodes, n)
}

func (x *nodeIndex) place(nodes []Node, n Node) *int32 {
	h := (uint64(uint32(n.Parent))<<32 | uint64(uint32(n.Frame))) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	for at := int(h >> 32); ; at++ {
		if p := &x.places[at&(len(x.places)-1)]; *p == 0 || nodes[*p] == n {
			return p
		}
	}
}

func (x *nodeIndex) grow(nodes []Node) {
	x.places = make([]int32, max(2*len(x.places), firstPlaces))
	for i := 1; i < len(nodes); i++ {
		*x.place(nodes, nodes[i]) = int32(i)
	}
}
