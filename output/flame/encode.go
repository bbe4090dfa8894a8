package flame

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strings"

	"goprof/output"
)

// page is the data for the script. data.js decodes it.
type page struct {
	About [][2]string `json:"about"`
	Unit  string      `json:"unit"` // profile.Weight: what is counted
	Names []string    `json:"names"`
	Kinds string      `json:"kinds"`
	pageTree
	Diff  *was     `json:"diff,omitempty"`
	Words []string `json:"words,omitempty"` // names of the kinds, if they are not kinds of frames
	// Whole is the tree with all frames, if the page's tree leaves out some. It uses the same names.
	Whole *pageTree `json:"whole,omitempty"`
}

// pageTree is a tree of a page. Its nodes are numbered in preorder.
type pageTree struct {
	Nodes    string `json:"nodes"` // Graph.Bytes in base64
	Count    int    `json:"count"`
	RootSelf int64  `json:"rootSelf"`
	// Split has the methods that ran as several kinds of code: the node, and its samples of each kind. It is null if kinds
	// are not merged.
	Split [][]int64 `json:"split"`
	// Guessed has the leaves that are guesses: the node, and how many of its own samples are guesses.
	Guessed [][2]int64 `json:"guessed,omitempty"`
}

// Graph is a tree in a page's data; core.js decodes it.
type Graph struct {
	// Names are sorted. The first character of each is a base64 digit: how many characters the name shares with the
	// previous name (only ASCII characters, and 63 at most).
	Names []string `json:"names"`
	Kinds string   `json:"kinds"` // a letter for each name: 'A' + kind
	Count int      `json:"count"` // number of nodes
	// Bytes are the nodes in preorder. Each has the number of its name, how many levels its parent is above the previous
	// node, and its own samples, as variable-length numbers (encoding/binary's Uvarint).
	Bytes    []byte `json:"-"`
	RootSelf int64  `json:"rootSelf"` // samples of frames directly above the root that were left out
}

// was is the earlier recording of a differential page.
type was struct {
	// Nodes has the same order as page.Nodes, with the root first, in base64. For each node it holds three variable-length
	// numbers: the node's own samples before the change, the result of the comparison, and the noise in thousandths of a
	// percentage point.
	Nodes string `json:"nodes"`
	Usual bool   `json:"usual,omitempty"` // the noise is the usual difference between starts
}

func encode(t *output.Tree, o Options) *page {
	p := &page{About: o.About, Unit: t.Weight.String()}
	if o.Kinds != nil {
		p.Words = o.Kinds[:]
	}
	if p.About == nil {
		p.About = [][2]string{}
	}
	shapes := []*shape{newShape(t, o.MinShare, o.Diff)}
	if o.Whole != nil {
		shapes = append(shapes, newShape(o.Whole, o.MinShare, nil))
	}
	var ids [][]int32
	p.Names, p.Kinds, ids = nameAll(shapes)
	var before []byte
	p.pageTree = shapes[0].pack(ids[0], func(node int32, was int64) {
		if d := o.Diff; d != nil {
			before = binary.AppendUvarint(before, uint64(was))
			before = binary.AppendUvarint(before, uint64(d.Told[node]))
			before = binary.AppendUvarint(before, uint64(math.Round(1000*d.Noise[node])))
		}
	})
	if o.Diff != nil {
		p.Diff = &was{base64.StdEncoding.EncodeToString(before), o.Diff.Usual}
	}
	if o.Whole != nil {
		whole := shapes[1].pack(ids[1], func(int32, int64) {})
		p.Whole = &whole
	}
	return p
}

// pack encodes a tree. It calls at for each shown node, with the node's own samples before.
func (s *shape) pack(ids []int32, at func(node int32, was int64)) (p pageTree) {
	if s.tree.Split != nil {
		p.Split = [][]int64{}
	}
	var g Graph
	s.encode(&g, ids, func(node int32, place int, was int64) {
		if parts, ok := s.tree.Split[node]; ok {
			p.Split = append(p.Split, append([]int64{int64(place)}, parts[:]...))
		}
		if n := s.tree.Guessed[node]; n > 0 {
			p.Guessed = append(p.Guessed, [2]int64{int64(place), n})
		}
		at(node, was)
	})
	p.Nodes, p.Count, p.RootSelf = base64.StdEncoding.EncodeToString(g.Bytes), g.Count, g.RootSelf
	return p
}

// Encode makes a Graph of each tree. A Graph has the frames with at least minShare of all samples. Encode calls at for
// each of them, with the tree's number and the frame's place in preorder; the root's place is 0. The first Graph has
// the names of all.
func Encode(trees []*output.Tree, minShares []float64, at func(tree int, node int32, place int)) []Graph {
	var shapes []*shape
	for i, t := range trees {
		shapes = append(shapes, newShape(t, minShares[i], nil))
	}
	all := make([]Graph, len(trees))
	var ids [][]int32
	all[0].Names, all[0].Kinds, ids = nameAll(shapes)
	for i, s := range shapes {
		s.encode(&all[i], ids[i], func(node int32, place int, _ int64) { at(i, node, place) })
	}
	return all
}

// encode calls at for each shown node, with its place in preorder, and its own samples before.
func (s *shape) encode(g *Graph, ids []int32, at func(node int32, place int, was int64)) {
	nodes := make([]byte, 0, 6*len(s.tree.Nodes))
	lastDepth := 0
	s.preorder(ids, func(node int32, depth int, self, was int64) {
		if node == 0 {
			g.RootSelf = self
		} else {
			nodes = binary.AppendUvarint(nodes, uint64(ids[s.tree.Nodes[node].Name]))
			nodes = binary.AppendUvarint(nodes, uint64(lastDepth+1-depth))
			nodes = binary.AppendUvarint(nodes, uint64(self))
			lastDepth = depth
			g.Count++
		}
		at(node, g.Count, was)
	})
	g.Bytes = nodes
}

const digits64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// nameAll writes one table of names for several trees. ids are the numbers of each tree's labels in it.
func nameAll(shapes []*shape) (names []string, kindsOf string, ids [][]int32) {
	type use struct{ tree, label int32 }
	var used []use
	for i, s := range shapes {
		ids = append(ids, make([]int32, len(s.tree.Labels)))
		for _, l := range s.usedLabels() {
			used = append(used, use{int32(i), l})
		}
	}
	nameOf := func(u use) output.Name { return shapes[u.tree].tree.Labels[u.label] }
	sort.Slice(used, func(i, j int) bool { return compareNames(nameOf(used[i]), nameOf(used[j])) < 0 })
	var kinds strings.Builder
	last := ""
	for i, u := range used {
		if i == 0 || nameOf(u) != nameOf(used[i-1]) {
			text := nameOf(u).Text
			shared := sharedASCII(last, text)
			names = append(names, digits64[shared:shared+1]+text[shared:])
			kinds.WriteByte('A' + byte(nameOf(u).Kind))
			last = text
		}
		ids[u.tree][u.label] = int32(len(names) - 1)
	}
	return names, kinds.String(), ids
}

func compareNames(a, b output.Name) int {
	return cmp.Or(strings.Compare(a.Text, b.Text), cmp.Compare(a.Kind, b.Kind))
}

// sharedASCII returns the length of the common ASCII beginning of two names, 63 at most.
func sharedASCII(a, b string) int {
	n, limit := 0, min(len(a), len(b), 63)
	for n < limit && a[n] == b[n] && a[n] < 0x80 {
		n++
	}
	return n
}

// shape is a tree from the root down, without the frames that are too small to be shown.
type shape struct {
	tree        *output.Tree
	totals      []int64
	least       int64 // the smallest total of a shown node
	first, next []int32

	diff     *Diff
	was      []int64 // totals before, nil if there is nothing to compare with
	wasLeast int64
}

func newShape(t *output.Tree, minShare float64, diff *Diff) *shape {
	s := &shape{
		tree:   t,
		totals: t.Totals(),
		least:  max(int64(math.Ceil(minShare*float64(t.Total))), 1),
		first:  make([]int32, len(t.Nodes)),
		next:   make([]int32, len(t.Nodes)),
	}
	if diff != nil {
		s.diff, s.was = diff, t.Sums(diff.Was)
		s.wasLeast = max(int64(math.Ceil(minShare*float64(s.was[0]))), 1)
	}
	for n := len(t.Nodes) - 1; n > 0; n-- {
		if s.shown(int32(n)) {
			parent := t.Nodes[n].Parent
			s.next[n] = s.first[parent]
			s.first[parent] = int32(n)
		}
	}
	return s
}

// shown reports whether a node is large enough in at least one recording.
func (s *shape) shown(n int32) bool {
	return s.totals[n] >= s.least || s.was != nil && s.was[n] >= s.wasLeast
}

// before returns a node's earlier total. It is 0 if there is nothing to compare with.
func (s *shape) before(n int32) int64 {
	if s.was == nil {
		return 0
	}
	return s.was[n]
}

func (s *shape) usedLabels() (used []int32) {
	seen := make([]bool, len(s.tree.Labels))
	for n := range s.tree.Nodes {
		if l := s.tree.Nodes[n].Name; n > 0 && s.shown(int32(n)) && !seen[l] {
			seen[l] = true
			used = append(used, l)
		}
	}
	return used
}

// preorder visits all shown nodes, with children sorted by name. A node's self includes the samples of its children
// that are not shown. The same holds for was, its samples before.
func (s *shape) preorder(order []int32, visit func(node int32, depth int, self, was int64)) {
	pending, depths := []int32{0}, []int{0}
	for len(pending) > 0 {
		from := len(pending) - 1
		at, depth := pending[from], depths[from]
		pending, depths = pending[:from], depths[:from]
		self, was := s.totals[at], s.before(at)
		for n := s.first[at]; n != 0; n = s.next[n] {
			self -= s.totals[n]
			was -= s.before(n)
			pending, depths = append(pending, n), append(depths, depth+1)
		}
		slices.SortFunc(pending[from:], func(a, b int32) int { // the last one is visited first
			x, y := &s.tree.Nodes[a], &s.tree.Nodes[b]
			return cmp.Or(cmp.Compare(order[y.Name], order[x.Name]), cmp.Compare(b, a))
		})
		visit(at, depth, self, was)
	}
}
