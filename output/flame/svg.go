package flame

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"goprof/output"
)

// The picture's measures, in pixels.
const (
	svgWidth    = 1200
	svgMargin   = 10
	svgRow      = 17
	svgLetter   = 7.0 // width of one letter of its font
	svgNarrow   = 0.2 // narrower boxes are left out
	svgTitle    = 58
	svgLegend   = 30
	svgMaxDepth = 10_000
)

// The colours of draw.js, for a light background.
var svgColours = [output.NumLabelKinds]string{
	output.LabelCompiled: "#94dc94", output.LabelC1: "#cfe283", output.LabelInterpreted: "#d7cfb7",
	output.LabelInlined: "#94dcda",
	output.LabelNative:  "#ee967b", output.LabelKernel: "#f7ae6e", output.LabelGap: "#b8b8b8",
	output.LabelThread: "#c9bae8", output.LabelTruncated: "#dbb3c7", output.LabelState: "#a8c2e6",
	output.LabelFolded: "#d9d9d9",
}

var svgKinds = [output.NumLabelKinds]string{
	"Java, compiled", "Java, C1", "Java, interpreted", "Java, inlined", "JVM and native", "kernel", "gap", "thread",
	"truncated",
	"state", "folded",
}

// SVG writes a picture for tickets and mail. It has no script. It shows a frame's name and figures when the mouse is on
// the frame.
func SVG(to io.Writer, tree *output.Tree, o Options) error {
	s := newShape(tree, max(o.MinShare, svgNarrow/(svgWidth-2*svgMargin)), o.Diff)
	w := bufio.NewWriter(to)
	words := &svgKinds
	if o.Kinds != nil {
		words = o.Kinds
	}
	d := drawing{w: w, shape: s, words: words, scale: (svgWidth - 2*svgMargin) / float64(s.totals[0])}
	d.place()
	d.open(o.Source, o.Title, o.Line)
	for _, b := range d.boxes {
		d.box(b)
	}
	d.legend()
	w.WriteString("</svg>\n")
	return w.Flush()
}

type drawing struct {
	w *bufio.Writer
	*shape
	words *[output.NumLabelKinds]string
	scale float64
	boxes []svgBox
	rows  int
	kinds [output.NumLabelKinds]bool
}

type svgBox struct {
	node  int32
	depth int
	x     float64
}

// place computes the position of each box.
func (d *drawing) place() {
	order := d.alphabetical()
	var ends []int64 // by depth: where the next box begins
	d.preorder(order, func(node int32, depth int, _, _ int64) {
		if depth >= svgMaxDepth || d.totals[node] < d.least {
			return
		}
		for len(ends) <= depth {
			ends = append(ends, 0)
		}
		x := ends[depth]
		ends[depth] += d.totals[node]
		// The first child begins where its parent does.
		if len(ends) == depth+1 {
			ends = append(ends, x)
		}
		ends[depth+1] = x
		d.boxes = append(d.boxes, svgBox{node, depth, float64(x)})
		d.rows = max(d.rows, depth+1)
		if node > 0 {
			d.kinds[d.label(node).Kind] = true
		}
	})
}

func (d *drawing) label(node int32) output.Name { return d.tree.Labels[d.tree.Nodes[node].Name] }

// alphabetical returns each label's rank among the sorted names.
func (d *drawing) alphabetical() []int32 {
	labels := d.tree.Labels
	sorted := make([]int32, len(labels))
	for i := range sorted {
		sorted[i] = int32(i)
	}
	slices.SortFunc(sorted, func(a, b int32) int { return compareNames(labels[a], labels[b]) })
	order := make([]int32, len(labels))
	for place, l := range sorted {
		order[l] = int32(place)
	}
	return order
}

func (d *drawing) open(source, title, line string) {
	height := svgTitle + d.rows*svgRow + svgLegend
	mark := ""
	if source != "" {
		mark = "<metadata>" + Mark(source) + "</metadata>\n"
	}
	fmt.Fprintf(d.w, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="monospace" font-size="11.5">
%s<rect width="100%%" height="100%%" fill="#fff"/>
<text x="%d" y="24" text-anchor="middle" font-size="16" font-family="sans-serif">%s</text>
<text x="%d" y="44" text-anchor="middle" font-size="12" font-family="sans-serif" fill="#555">%s</text>
`, svgWidth, height, svgWidth, height, mark, svgWidth/2, xmlText(title), svgWidth/2, xmlText(line))
}

func (d *drawing) box(b svgBox) {
	l, fill := output.Name{Text: "all", Kind: output.LabelNative}, "#ddd"
	if b.node > 0 {
		l = d.label(b.node)
		fill = svgColours[l.Kind]
		if d.diff != nil {
			fill = d.changeFill(b.node)
		}
	}
	total := d.totals[b.node]
	x, y := svgMargin+b.x*d.scale, svgTitle+(d.rows-1-b.depth)*svgRow
	width := float64(total) * d.scale
	fmt.Fprintf(d.w, `<g><title>%s (%s, %s%s)</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`,
		xmlText(l.Text), output.Amount(d.tree.Weight, total), output.Percent(total, d.totals[0]),
		xmlText(d.changeText(b.node)), x, y, max(width-0.5, 0.2), svgRow-1, fill)
	if text := cut(l, int((width-4)/svgLetter)); text != "" {
		fmt.Fprintf(d.w, `<text x="%.1f" y="%d">%s</text>`, x+3, y+12, xmlText(text))
	}
	d.w.WriteString("</g>\n")
}

func (d *drawing) legend() {
	x, y := svgMargin, svgTitle+d.rows*svgRow+10
	if d.diff != nil {
		d.changeLegend(x, y)
		return
	}
	for kind, used := range d.kinds {
		if !used {
			continue
		}
		fmt.Fprintf(d.w, `<rect x="%d" y="%d" width="11" height="11" fill="%s"/>`+
			`<text x="%d" y="%d" font-family="sans-serif">%s</text>`+"\n",
			x, y, svgColours[kind], x+16, y+10, xmlText(d.words[kind]))
		x += 40 + 7*len(d.words[kind])
	}
}

// cut shortens a name to a number of letters, as the page does (draw.js). A Java name first loses its package. Then the
// end is cut off.
func cut(l output.Name, room int) string {
	name := l.Text
	if utf8.RuneCountInString(name) > room && l.Kind.Java() {
		name = withoutPackage(name)
	}
	if utf8.RuneCountInString(name) <= room {
		return name
	}
	if room < 4 {
		return ""
	}
	return string([]rune(name)[:room-1]) + "\u2026"
}

func withoutPackage(name string) string {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		if pkg := strings.LastIndexAny(name[:dot], "./"); pkg > 0 {
			return name[pkg+1:]
		}
	}
	return name
}

var xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// xmlText escapes a name. Characters become '?' if XML cannot hold them, or if they would change the direction of text.
func xmlText(s string) string {
	return xmlEscapes.Replace(strings.Map(func(r rune) rune {
		if output.Unsafe(r) || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, s))
}
