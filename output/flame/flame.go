// Package flame draws flame graphs: self-contained pages, and pictures.
//
// Names come from the target and may be hostile. In a page they are data: JSON in a script element that is not run,
// with every '<' escaped. The page's own script sets them as text alone. The page's Content-Security-Policy allows
// that one script and nothing from any network.
package flame

import (
	_ "embed"
	"encoding/json"
	"io"

	"goprof/output"
)

//go:embed flame.html
var pageHTML string

//go:embed flame.css
var style string

// The page's script is one scope in several files. The files in shared.go are those that other pages embed, too.
var (
	//go:embed data.js
	dataJS string
	//go:embed diff.js
	diffJS string
	//go:embed calls.js
	callsJS string
	//go:embed page.js
	pageJS string
)

// Options are the user's choices.
type Options struct {
	Title string
	// Source is the name of the file that is drawn, or empty: Mark has it.
	Source string
	// Line stands below the title and says what was recorded: mode, samples, when, of which process.
	Line string
	// MinShare leaves out frames with less than this share of all samples, 0 to 1.
	MinShare float64
	// About is shown in the page: facts and their values.
	About [][2]string
	// Above is HTML that stands above the graph, without scripts and styles of its own. Its maker escapes all text in
	// it.
	Above string
	// Whole is the tree with all frames, of which the page's tree leaves some out. The page shows it when a key is
	// pressed. It is nil if there is none.
	Whole *output.Tree
	// Kinds explains the kinds of nodes, if the nodes are not frames.
	Kinds *[output.NumLabelKinds]string
	// Diff makes a differential flame graph: the tree is that of both recordings, with the counts of the later one.
	Diff *Diff
}

// Diff is what is known about the earlier recording, for each node of the tree.
type Diff struct {
	Was   []int64   // its own samples
	Told  []Told    // what the comparison says of its change
	Noise []float64 // the change that noise alone gives, in points of 100; 0 if that is not known
	Usual bool      // Noise is what two starts of one program usually differ by
}

// Told is what a differential flame graph says about a frame.
type Told uint8

const (
	NotJudged   Told = iota
	WithinNoise      // noise alone would give such a change
	Significant
	Likely    // more than noise, and more than starts of one program usually differ by
	Unsettled // more than noise within the recordings; starts may differ by as much
	Perhaps   // more than noise, if no other frame had been compared
)

// Pale reports whether a change has a colour and is not proven.
func (t Told) Pale() bool { return t == Unsettled || t == Perhaps }

// Page writes a page with the tree's flame graph.
func Page(to io.Writer, tree *output.Tree, o Options) error {
	data, err := json.Marshal(encode(tree, o)) // escapes '<', '>' and '&'
	if err != nil {
		return err
	}
	return Seal(to, pageHTML, Parts{
		Title: o.Title, Line: o.Line, Source: o.Source, Above: o.Above, Style: BaseStyle + style, Data: data,
		Script: CoreScript + dataJS + DrawScript + diffJS + callsJS + pageJS,
	})
}
