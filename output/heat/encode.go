package heat

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"goprof/output"
	"goprof/output/flame"
	"goprof/profile"
)

// maxShown bounds the frames of a page, of some four bytes each.
const maxShown = 400_000

// timePage is the data for the script. load.js decodes it.
type timePage struct {
	About [][2]string `json:"about"`
	Unit  string      `json:"unit"` // profile.Weight: what is counted; times are microseconds
	flame.Graph
	Nodes string `json:"nodes"` // Graph.Bytes, packed
	// Whole is the tree with all frames, if the page's tree leaves out some. It uses the same names.
	Whole *wholeTree `json:"whole,omitempty"`

	Start   float64 `json:"start"` // ms since 1970
	Seconds float64 `json:"seconds"`
	Cell    float64 `json:"cell"` // seconds
	Rows    int     `json:"rows"` // number of cells in a column
	Columns int     `json:"columns"`

	Lanes  []string `json:"lanes"`
	LaneOf string   `json:"laneOf"` // "thread" or "pool"
	Marks  []mark   `json:"marks"`

	// Samples holds packed numbers. First come the stacks, as many as Stacks says, those with the most entries first. A
	// stack is twice the number of its node, plus 1 if the leaf is a guess. If there is a Whole, the numbers of the same
	// stacks in that tree follow. Then come the entries, ordered by cell, column by column. Each entry has its distance in
	// cells from the previous entry; its number of cells, less one (if Spans); its lane; its stack; its weight.
	Samples string `json:"samples"`
	Entries int    `json:"entries"`
	Stacks  int    `json:"stacks"`
	Spans   bool   `json:"spans"`
	Looks   int64  `json:"looks"`
}

// wholeTree is a tree beside the page's own.
type wholeTree struct {
	Nodes    string `json:"nodes"`
	Count    int    `json:"count"`
	RootSelf int64  `json:"rootSelf"`
}

// stackEnd is the node at which the stack of an entry ends on the page.
type stackEnd struct {
	place, whole int32 // in the page's tree, and in the tree with all frames
	guess        bool
}

func (h *heat) encode(o Options) (*timePage, error) {
	g := &h.grid
	p := &timePage{
		Unit:  h.unit.weight.String(),
		Start: float64(g.start) / 1e6, Seconds: float64(g.length) / 1e9, Cell: float64(g.cell) / 1e9,
		Rows: g.rows, Columns: g.columns,
		Marks: h.marks.list, Entries: len(h.list), LaneOf: "pool", Looks: h.samples,
	}
	if o.Threads {
		p.LaneOf = "thread"
	}
	if p.Marks == nil {
		p.Marks = []mark{}
	}
	h.order()
	p.Lanes = h.lanes.names
	stacks, least, err := h.place(p, o.Shape)
	if err != nil {
		return nil, err
	}
	if err := p.pack(h.list, stacks); err != nil {
		return nil, err
	}
	p.About = append(slices.Clone(o.About), h.about(p, least)...)
	return p, nil
}

// order gives lanes their places in the page.
func (h *heat) order() {
	now := h.lanes.ordered()
	for i := range h.list {
		h.list[i].lane = now[h.list[i].lane]
	}
	h.merge()
}

// reweigh computes the weights of the tree's nodes again from the entries, because entries may have been cut after
// their weight was added.
func (h *heat) reweigh() {
	nodes := h.stacks.tree.Nodes
	for n := range nodes {
		nodes[n].Self = 0
	}
	for i := range h.list {
		node := &nodes[h.list[i].at()]
		node.Self = addTime(node.Self, h.list[i].weight)
	}
}

// place encodes the tree in a shape, and also with all frames if the shape hides some. If a tree has too many frames,
// those with a weight below least are left out. The stacks of entries get new numbers.
func (h *heat) place(p *timePage, s output.Shape) (stacks []stackEnd, least int64, err error) {
	shapes := []output.Shape{s}
	if s.HideEntries || s.HideWaits {
		s.HideEntries, s.HideWaits = false, false
		shapes = append(shapes, s)
	}
	h.reweigh()
	var trees []*output.Tree
	var places [][]int32 // of the leaves of h's tree, in each tree
	var shares []float64
	for _, s := range shapes {
		tree, leaves := &h.stacks.tree, []int32(nil)
		if s != (output.Shape{}) {
			tree, leaves = tree.ShapedLeaves(s)
		}
		if len(trees) > 0 && len(tree.Nodes) == len(trees[0].Nodes) {
			break // nothing is hidden
		}
		fewest := leastShown(tree, maxShown)
		least = max(least, fewest)
		trees, places = append(trees, tree), append(places, leaves)
		shares = append(shares, (float64(fewest)-0.5)/float64(max(tree.Total, 1)))
	}
	at := make([][]int32, len(trees)) // of the nodes of each tree, on the page
	for i, tree := range trees {
		at[i] = slices.Repeat([]int32{-1}, len(tree.Nodes))
	}
	graphs := flame.Encode(trees, shares, func(tree int, node int32, place int) { at[tree][node] = int32(place) })
	for i, tree := range trees {
		for n := 1; n < len(tree.Nodes); n++ { // parents come before their children
			if at[i][n] < 0 {
				at[i][n] = at[i][tree.Nodes[n].Parent]
			}
		}
	}
	placeIn := func(i int, node int32) int32 {
		if i >= len(trees) {
			return 0
		}
		if places[i] != nil {
			node = places[i][node]
		}
		return at[i][node]
	}
	stacks = h.number(func(node int32, guess bool) stackEnd {
		return stackEnd{placeIn(0, node), placeIn(1, node), guess}
	})
	if p.Graph = graphs[0]; p.Names == nil {
		p.Names = []string{}
	}
	if p.Nodes, err = pack(p.Bytes); err == nil && len(graphs) > 1 {
		p.Whole = &wholeTree{Count: graphs[1].Count, RootSelf: graphs[1].RootSelf}
		p.Whole.Nodes, err = pack(graphs[1].Bytes)
	}
	p.Entries = len(h.list)
	return stacks, least, err
}

// number numbers the shown stacks. Afterwards, the node of an entry is such a number.
func (h *heat) number(of func(node int32, guess bool) stackEnd) (stacks []stackEnd) {
	numbers := make(map[stackEnd]int32)
	for i := range h.list {
		one := &h.list[i]
		key := of(one.at(), one.node&guessed != 0)
		n, ok := numbers[key]
		if !ok {
			n = int32(len(stacks))
			numbers[key] = n
			stacks = append(stacks, key)
		}
		one.node = n
	}
	h.merge()
	return stacks
}

// leastShown returns the smallest weight of a shown frame. most bounds the shown frames.
func leastShown(t *output.Tree, most int) int64 {
	if len(t.Nodes) <= most {
		return 1
	}
	totals := t.Totals()
	slices.Sort(totals)
	return totals[len(totals)-1-most] + 1
}

func (p *timePage) pack(list []entry, stacks []stackEnd) error {
	rank, order := rankStacks(list)
	p.Stacks = len(order)
	b := make([]byte, 0, 4*len(list)+6*len(order))
	for _, n := range order {
		place := 2 * uint64(stacks[n].place)
		if stacks[n].guess {
			place++
		}
		b = binary.AppendUvarint(b, place)
	}
	for _, n := range order {
		if p.Whole != nil {
			b = binary.AppendUvarint(b, uint64(stacks[n].whole))
		}
	}
	last := uint32(0)
	for _, e := range list {
		b = binary.AppendUvarint(b, uint64(e.cell-last))
		last = e.cell
		p.Spans = p.Spans || e.cells > 1
	}
	if p.Spans {
		for _, e := range list {
			b = binary.AppendUvarint(b, uint64(e.cells-1))
		}
	}
	for _, e := range list {
		b = binary.AppendUvarint(b, uint64(e.lane))
	}
	for _, e := range list {
		b = binary.AppendUvarint(b, uint64(rank[e.node]))
	}
	for _, e := range list {
		b = binary.AppendUvarint(b, uint64(e.weight))
	}
	var err error
	p.Samples, err = pack(b)
	return err
}

func rankStacks(list []entry) (rank map[int32]int, order []int32) {
	count := make(map[int32]int)
	for _, e := range list {
		count[e.node]++
	}
	order = slices.Collect(maps.Keys(count))
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	for i, n := range order {
		count[n] = i
	}
	return count, order
}

// pack turns bytes into text: deflated, in base64.
func pack(b []byte) (string, error) {
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err != nil {
		return "", err
	}
	if _, err = w.Write(b); err == nil {
		err = w.Close()
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), err
}

// about returns what a reader must know about how the page was made.
func (h *heat) about(p *timePage, least int64) (facts [][2]string) {
	add := func(name, format string, values ...any) {
		facts = append(facts, [2]string{name, fmt.Sprintf(format, values...)})
	}
	g := &h.grid
	add("cells", "%s each, %d in a column of %s", nanos(g.cell), g.rows, nanos(g.column()))
	add("stacks", "%d different", p.Stacks)
	if least > 1 {
		what := fmt.Sprintf("%d samples", least)
		switch {
		case h.unit.weight.IsTime():
			what = (time.Duration(least) * time.Microsecond).String()
		case h.unit.weight == profile.Bytes:
			what = fmt.Sprintf("%d bytes", least)
		}
		add("left out", "frames with less than %s: their callers stand for them", what)
	}
	if h.stacks.full > 0 {
		add("cut", "%d samples, whose stacks would have made too large a tree", h.stacks.full)
	}
	if h.cut {
		add("merged", "rare stacks stand under their callers: too many threads have too many different ones")
	}
	if h.lanes.beyond > 0 {
		add("lanes", "%d with little share the last", h.lanes.beyond)
	}
	if h.marks.left > 0 {
		add("marks", "the %d longest; %d shorter ones are left out", len(h.marks.list), h.marks.left)
	}
	return facts
}

func nanos(n uint64) time.Duration { return time.Duration(min(n, math.MaxInt64)) }
