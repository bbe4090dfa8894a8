package heat

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"goprof/output"
	"goprof/output/flame"
	"goprof/profile"
)

// maxShown bounds the frames of a page: some four bytes each.
const maxShown = 400_000

// timePage is the data for the script. load.js takes it apart.
type timePage struct {
	About [][2]string `json:"about"`
	Unit  string      `json:"unit"` // profile.Weight: what is counted; times are microseconds
	flame.Graph
	Nodes string `json:"nodes"` // Graph.Bytes, packed

	Start   float64 `json:"start"` // ms since 1970
	Seconds float64 `json:"seconds"`
	Cell    float64 `json:"cell"` // seconds
	Rows    int     `json:"rows"` // cells of a column
	Columns int     `json:"columns"`

	Lanes  []string `json:"lanes"`
	LaneOf string   `json:"laneOf"` // "thread" or "pool"
	Marks  []mark   `json:"marks"`

	// Samples holds packed numbers, of the entries by cell. First come Stacks places of nodes, those with the most
	// entries first. Then come columns of all entries: how many cells an entry begins behind the one before; how many
	// cells it has, less one (if Spans); the lanes; the stacks; the weights.
	Samples string `json:"samples"`
	Entries int    `json:"entries"`
	Stacks  int    `json:"stacks"`
	Spans   bool   `json:"spans"`
	Looks   int64  `json:"looks"`
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
	h.shape(o.Shape)
	least := h.place(p)
	if err := p.pack(h.list); err != nil {
		return nil, err
	}
	p.About = append(slices.Clone(o.About), h.about(p, least)...)
	var err error
	if p.Nodes, err = pack(p.Bytes); err != nil {
		return nil, err
	}
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

// shape gives the tree and the entries another shape. Entries may have been cut after their weight was added.
func (h *heat) shape(s output.Shape) {
	tree := &h.stacks.tree
	if s == (output.Shape{}) {
		return
	}
	for n := range tree.Nodes {
		tree.Nodes[n].Self = 0
	}
	for i := range h.list {
		node := &tree.Nodes[h.list[i].node]
		node.Self = addTime(node.Self, h.list[i].weight)
	}
	shaped, leaves := tree.ShapedLeaves(s)
	for i := range h.list {
		h.list[i].node = leaves[h.list[i].node]
	}
	h.stacks.tree = *shaped
	h.merge()
}

// place encodes the tree, without frames of less weight than least if there are too many, and gives the entries the
// places of their nodes in it.
func (h *heat) place(p *timePage) (least int64) {
	tree := &h.stacks.tree
	least = leastShown(tree, maxShown)
	places := make([]int32, len(tree.Nodes))
	for i := range places {
		places[i] = -1
	}
	share := (float64(least) - 0.5) / float64(max(tree.Total, 1))
	p.Graph = flame.Encode(tree, share, func(node int32, place int) { places[node] = int32(place) })
	if p.Names == nil {
		p.Names = []string{}
	}
	for n := 1; n < len(places); n++ { // parents stand before their children
		if places[n] < 0 {
			places[n] = places[tree.Nodes[n].Parent]
		}
	}
	for i := range h.list {
		h.list[i].node = places[h.list[i].node]
	}
	h.merge()
	p.Entries = len(h.list)
	return least
}

// leastShown is the smallest weight of a frame that is shown, so that no more than most frames are.
func leastShown(t *output.Tree, most int) int64 {
	if len(t.Nodes) <= most {
		return 1
	}
	totals := t.Totals()
	slices.SortFunc(totals, func(a, b int64) int { return cmp.Compare(b, a) })
	return totals[most] + 1
}

// pack writes the columns of numbers.
func (p *timePage) pack(list []entry) error {
	rank, nodes := rankStacks(list)
	p.Stacks = len(nodes)
	b := make([]byte, 0, 4*len(list)+3*len(nodes))
	for _, n := range nodes {
		b = binary.AppendUvarint(b, uint64(n))
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

// rankStacks numbers nodes by their number of entries.
func rankStacks(list []entry) (rank map[int32]int, nodes []int32) {
	count := make(map[int32]int)
	for _, e := range list {
		count[e.node]++
	}
	for n := range count {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b int32) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	for i, n := range nodes {
		count[n] = i
	}
	return count, nodes
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

// about says what a reader of the page must know about its making.
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
