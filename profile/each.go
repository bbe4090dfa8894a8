package profile

import (
	"cmp"
	"slices"
	"strings"
)

// Each calls visit for every different stack with its weight (see Meta), always in the same order for the same profile.
// Frames are root first and valid only during the call.
func (p *Profile) Each(visit func(frames []Frame, n int64)) {
	w := walk{p: p, links: p.links()}
	w.each(0, nil, visit)
}

// EachLine calls visit for every different path of labels with its weight. The order is that of the sorted lines
// "label;label;label weight", compared by bytes. Frames with the same label are merged. Labels are root first and valid
// only during the call. No label may contain a ';'.
func (p *Profile) EachLine(label func(*Func, Kind) string, visit func(path []string, n int64)) {
	p.EachGuess(label, func(path []string, n, _ int64) { visit(path, n) })
}

// EachGuess is EachLine with guesses. guessed is the part of n whose leaf is a guess.
func (p *Profile) EachGuess(label func(*Func, Kind) string, visit func(path []string, n, guessed int64)) {
	w := walk{p: p, links: p.links(), label: label, names: make(map[uint32]string)}
	w.lines([]int32{0}, nil, visit)
}

// maxLabels bounds the kept labels, of some 100 bytes each: a profile has up to ten times as many.
const maxLabels = 1 << 14

// links are the tree's edges in the direction from the root to the leaves.
type links struct {
	first, next []int32
}

func (p *Profile) links() links {
	l := links{make([]int32, p.tree.size), make([]int32, p.tree.size)}
	for n := p.tree.size - 1; n > 0; n-- {
		parent := p.tree.at(n).parent
		l.next[n] = l.first[parent]
		l.first[parent] = n
	}
	return l
}

func (l *links) children(of int32, to []int32) []int32 {
	for n := l.first[of]; n != 0; n = l.next[n] {
		to = append(to, n)
	}
	return to
}

type walk struct {
	p *Profile
	links
	label func(*Func, Kind) string
	names map[uint32]string // labels made so far, by function and kind
	rows  []*row            // of lines, by depth
}

// row holds the buffers of lines for one depth. The next branch reuses them: a large tree has hundreds of thousands.
type row struct {
	kids     []int32
	branches []branch
}

func (w *walk) row(depth int) *row {
	for len(w.rows) <= depth {
		w.rows = append(w.rows, new(row))
	}
	return w.rows[depth]
}

func (w *walk) each(at int32, path []Frame, visit func([]Frame, int64)) {
	if n := w.p.tree.at(at).self[w.p.Meta.Weight.slot()]; n != 0 {
		visit(path, n)
	}
	kids := w.children(at, nil)
	slices.SortFunc(kids, w.compareFrames)
	for _, k := range kids {
		nd := w.p.tree.at(k)
		w.each(k, append(path, Frame{Func: w.p.funcs.list[nd.fn()], Kind: nd.kind(), BCI: -1}), visit)
	}
}

func (w *walk) compareFrames(a, b int32) int {
	x, y := w.p.tree.at(a), w.p.tree.at(b)
	f, g := w.p.funcs.list[x.fn()], w.p.funcs.list[y.fn()]
	return cmp.Or(strings.Compare(f.Name, g.Name), cmp.Compare(x.kind(), y.kind()),
		strings.Compare(f.Module, g.Module), strings.Compare(f.Build, g.Build), strings.Compare(f.File, g.File))
}

// branch has all children with one label, under nodes with equal paths of labels. Each label has two branches: one for
// the samples that end there, and one for the samples that continue below.
type branch struct {
	label string
	nodes []int32
	below bool // the lines below, not the line that ends here
}

func (w *walk) lines(nodes []int32, path []string, visit func([]string, int64, int64)) {
	for _, b := range w.branches(nodes, w.row(len(path))) {
		path := append(path, b.label)
		if b.below {
			w.lines(b.nodes, path, visit)
		} else if n, guessed := w.self(b.nodes); n != 0 {
			visit(path, n, guessed)
		}
	}
}

// branches groups the children of some nodes by label, sorted by label.
func (w *walk) branches(nodes []int32, r *row) []branch {
	kids := r.kids[:0]
	for _, n := range nodes {
		kids = w.children(n, kids)
	}
	slices.SortFunc(kids, func(a, b int32) int { return strings.Compare(w.labelOf(a), w.labelOf(b)) })
	branches := r.branches[:0]
	for i, j := 0, 0; i < len(kids); i = j {
		label := w.labelOf(kids[i])
		for j = i + 1; j < len(kids) && w.labelOf(kids[j]) == label; j++ {
		}
		branches = append(branches, branch{label, kids[i:j], false}, branch{label, kids[i:j], true})
	}
	slices.SortStableFunc(branches, compareBranches)
	r.kids, r.branches = kids, branches
	return branches
}

// compareBranches orders branches like their lines. If one label is the beginning of the other, the text after the
// shorter one decides.
func compareBranches(a, b branch) int {
	short := min(len(a.label), len(b.label))
	if c := strings.Compare(a.label[:short], b.label[:short]); c != 0 {
		return c
	}
	return strings.Compare(a.label[short:]+a.behind(), b.label[short:]+b.behind())
}

func (b branch) behind() string {
	if b.below {
		return ";"
	}
	return " "
}

func (w *walk) self(nodes []int32) (n, guessed int64) {
	slot := w.p.Meta.Weight.slot()
	for _, k := range nodes {
		n += w.p.tree.at(k).self[slot]
		guessed += w.p.guessed[k][slot]
	}
	return n, guessed
}

func (w *walk) labelOf(n int32) string {
	nd := w.p.tree.at(n)
	return Cached(w.names, maxLabels, nd.what, func() string { return w.label(w.p.funcs.list[nd.fn()], nd.kind()) })
}
