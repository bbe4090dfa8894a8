// Package flame draws flame graphs: self-contained pages, and pictures.
//
// Names come from the target and may be malicious. In a page they are data: JSON in a script element that is not run,
// with every '<' escaped. The page's own script only sets them as text. The page's Content-Security-Policy allows that
// one script and nothing from any network.
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

// The page's script is one scope in several files. The files in shared.go are also embedded in other pages.
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

type Options struct {
	Title string
	// Source is the name of the drawn file, or empty; see Mark.
	Source string
	// Line is the line below the title. It shows what was recorded: mode, samples, time, process.
	Line string
	// MinShare leaves out frames with less than this share of all samples, 0 to 1.
	MinShare float64
	// About are facts that the page shows, with their values.
	About [][2]string
	// Above is HTML that is shown above the graph, without scripts and styles of its own. The caller escapes all text in
	// it.
	Above string
	// Whole is the tree with all frames, if the page's tree leaves out some. A key shows it. It is nil if there is none.
	Whole *output.Tree
	// Kinds names the kinds of nodes, if the nodes are not frames.
	Kinds *[output.NumLabelKinds]string
	// Diff makes a differential flame graph. The tree is that of both recordings, with the counts of the later one.
	Diff *Diff
}

// Diff is the facts about the earlier recording, for each node of the tree.
type Diff struct {
	Was   []int64   // its own samples
	Told  []Told    // the comparison's result for its change
	Noise []float64 // the change by noise alone, in percentage points; 0 if that is not known
	Usual bool      // Noise is the usual difference between two starts of one program
}

// Told is a comparison's result for a frame.
type Told uint8

const (
	NotJudged   Told = iota
	WithinNoise      // noise alone may cause such a change
	Significant
	Likely    // more than noise, and more than the usual difference between starts
	Unsettled // more than noise within the recordings; starts may differ by as much
	Perhaps   // would be more than noise if no other frame were compared
)

// Pale reports whether a change has a colour although it is not proven.
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
