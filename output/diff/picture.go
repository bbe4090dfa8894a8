package diff

import (
	"io"

	"goprof/output"
	"goprof/output/flame"
)

// told is the smallest share of a path for which pages show the noise, because computing it takes time.
const told = 0.001

// Page writes a page with a differential flame graph.
func (r *Result) Page(to io.Writer, title string, about [][2]string) error {
	tree, o := r.picture(title)
	o.Line += " " + seen(o.Diff)
	o.About = append([][2]string{
		{"before", r.Before.line(r)}, {"after", r.After.line(r)}, {"result", r.Verdict()}, {"noise", r.method()},
	}, about...)
	return flame.Page(to, tree, o)
}

// SVG writes a differential flame graph as a picture.
func (r *Result) SVG(to io.Writer, title string) error {
	tree, o := r.picture(title)
	return flame.SVG(to, tree, o)
}

func (r *Result) told(e *evidence) flame.Told {
	switch {
	case e.held <= Risk:
		return flame.Significant
	case r.isLikely(e):
		return flame.Likely
	case e.differs:
		return flame.Unsettled
	case e.p <= Risk && e.change() != 0:
		return flame.Perhaps
	}
	return flame.WithinNoise
}

// seen explains the colours of a page if no change of a frame is significant.
func seen(d *flame.Diff) string {
	most := flame.WithinNoise
	for _, told := range d.Told {
		switch told {
		case flame.Significant, flame.Likely:
			return ""
		case flame.Perhaps, flame.Unsettled:
			if most != flame.Unsettled {
				most = told
			}
		}
	}
	switch most {
	case flame.Unsettled:
		return "Pale frames changed by more than noise within the recordings."
	case flame.Perhaps:
		return "Pale frames would be significant if each were the only one that is compared. Record more to be sure."
	}
	return "All frames are grey: noise alone makes such changes."
}

// picture returns the tree of both recordings with the counts of the later one, and the facts about the earlier one.
func (r *Result) picture(title string) (*output.Tree, flame.Options) {
	from := r.c.tree.nodes
	tree := &output.Tree{Labels: r.c.tree.labels, Nodes: make([]output.TreeNode, len(from)), Weight: r.Weight,
		Total: r.After.Total}
	d := &flame.Diff{Was: make([]int64, len(from)), Told: make([]flame.Told, len(from)), Noise: make([]float64, len(from)),
		Usual: r.c.tooFew()}
	for n := range from {
		tree.Nodes[n] = output.TreeNode{Self: from[n].self[After], Parent: from[n].parent, Name: from[n].label}
		d.Was[n] = from[n].self[Before]
		if n > 0 {
			d.Told[n] = flame.WithinNoise
		}
		if from[n].self[After] > 0 {
			tree.Stacks++
		}
	}
	for i := range r.evidence {
		e := &r.evidence[i]
		if r.sortOf(e.item.number) != OfPath {
			continue
		}
		n := r.node(e)
		d.Told[n] = r.told(e)
		switch {
		case d.Usual:
			d.Noise[n] = 100 * e.usual()
		case e.pooled() >= told:
			d.Noise[n] = 100 * (e.noise(r.limit*e.weight) + e.byGuesses())
		}
	}
	return tree, flame.Options{Title: title, Line: r.Verdict(), Diff: d}
}
