// Package heat draws a recording over time: one page with a heat map, a strip for each thread or pool, and the flame
// graph of the selection.
//
// The size of a page is bounded, however long the recording is. Time is cut into cells, and a longer recording has
// longer cells (grid.go). Samples of one cell, lane and stack are one entry, and cells grow until there are few enough
// entries (entries.go). Frames with too few samples are left out (encode.go). Threads with few samples share one lane
// (lanes.go). The page says what was left out.
//
// Names come from the target and may be malicious. In the page they are data, as in package flame.
package heat

import (
	_ "embed"
	"encoding/json"
	"errors"
	"io"

	"goprof/output"
	"goprof/output/flame"
	"goprof/output/recording"
)

var (
	//go:embed heat.html
	pageHTML string
	//go:embed heat.css
	style string

	// The page's script consists of several files, some of them from package flame. All share one scope.
	//go:embed load.js
	loadJS string
	//go:embed sums.js
	sumsJS string
	//go:embed chart.js
	chartJS string
	//go:embed graph.js
	graphJS string
	//go:embed page.js
	pageJS string
)

type Options struct {
	Title string
	// Source is the name of the drawn file, or empty.
	Source string
	// Line is the line below the title, which shows what was recorded.
	Line string
	// About are facts that the page shows, with their values.
	About [][2]string
	// Threads makes a lane for each thread, not for each pool of threads.
	Threads bool
	// Shape sets how the stacks are drawn.
	Shape output.Shape
}

var (
	// ErrNoTimes: the recording holds sums, and no times.
	ErrNoTimes = errors.New("its samples have no times")
	// ErrEmpty: there is nothing to draw.
	ErrEmpty = errors.New("it has no samples")
)

func Write(to io.Writer, src recording.Source, o Options) error {
	info := src.Info()
	if !info.Timed {
		return ErrNoTimes
	}
	h, err := read(src, &info, o.Threads)
	if err != nil {
		return err
	}
	p, err := h.encode(o)
	if err != nil {
		return err
	}
	data, err := json.Marshal(p) // escapes '<', '>' and '&'
	if err != nil {
		return err
	}
	return flame.Seal(to, pageHTML, flame.Parts{
		Title: o.Title, Line: o.Line, Source: o.Source, Data: data, Style: flame.BaseStyle + style,
		Script: flame.CoreScript + loadJS + flame.DrawScript + sumsJS + chartJS + graphJS + pageJS,
	})
}
