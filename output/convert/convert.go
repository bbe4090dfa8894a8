// Package convert writes a recording in any of goprof's formats.
//
// It takes a recording.Source and a format. Memory is bounded by each format's own package. An error of the source is a
// *SourceError. Other errors come from writing.
package convert

import (
	"fmt"
	"io"

	"goprof/output"
	"goprof/output/firefox"
	"goprof/output/flame"
	"goprof/output/format"
	"goprof/output/recording"
	"goprof/output/speedscope"
	"goprof/profile"
)

type Options struct {
	// Sum sets how samples are summed up, in formats with sums of stacks.
	Sum recording.SumOptions
	// Shape sets which frames or threads are merged, in formats that goprof draws or counts itself: html, svg, json.
	Shape output.Shape
	// Page sets what a flame graph shows about the recording. It may be nil.
	Page func(*output.Tree) flame.Options
	// Tell gets lines about what was merged or left out. It may be nil.
	Tell func(string)
}

type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// Write writes a recording, and returns how many samples it wrote.
func Write(to io.Writer, f format.Format, src recording.Source, o Options) (samples int64, err error) {
	w := &watched{Source: src}
	shown, err := w.settled(f)
	switch {
	case err != nil:
	case f == format.PProf:
		err = writePProf(to, shown, o.Tell)
	case f == format.Speedscope:
		err = speedscope.Write(to, shown, speedscope.Options{Tell: o.Tell})
	case f == format.Firefox:
		err = firefox.Write(to, shown, firefox.Options{Tell: o.Tell})
	default:
		err = w.write(to, f, o)
	}
	if w.err != nil {
		err = w.err
	}
	if err == nil && w.samples == 0 {
		err = recording.Empty(src)
	}
	if err != nil && (w.err != nil || recording.IsBad(err) || recording.IsEmpty(err)) {
		err = &SourceError{err}
	}
	return w.samples, err
}

// write writes formats that show which leaves are guesses, or that are sums.
func (w *watched) write(to io.Writer, f format.Format, o Options) error {
	switch f {
	case format.Collapsed:
		return writeCollapsed(to, w, o.Sum)
	case format.HTML, format.SVG, format.JSON:
		return writeTree(to, f, w, o)
	case format.JFR:
		return writeJFR(to, w, o.Tell)
	}
	return fmt.Errorf("nothing writes %s", f)
}

// settled returns the recording for formats that cannot show which leaves are guesses.
func (w *watched) settled(f format.Format) (recording.Source, error) {
	if f.Mute() {
		return recording.Settled(w)
	}
	return w, nil
}

// watched counts samples, and distinguishes errors of reading from errors of the samples' receiver.
type watched struct {
	recording.Source
	samples int64
	err     error
}

func (w *watched) Each(visit func(*profile.Sample) error) error {
	return w.Visit(recording.AllStacks, visit)
}

func (w *watched) Visit(stacks recording.Stacks, visit func(*profile.Sample) error) error {
	w.samples = 0
	var theirs error
	err := recording.Visit(w.Source, stacks, func(s *profile.Sample) error {
		w.samples += s.Looks()
		theirs = visit(s)
		return theirs
	})
	if theirs == nil {
		w.err = err
	}
	return err
}

func (w *watched) Marks(visit func(recording.Mark) error) error {
	return recording.Marks(w.Source, visit)
}
func (w *watched) Lives(visit func(recording.Life) error) error {
	return recording.Lives(w.Source, visit)
}

func writeCollapsed(to io.Writer, src recording.Source, o recording.SumOptions) error {
	p, err := recording.Sum(src, o)
	if err != nil {
		return err
	}
	return output.Collapsed(to, p)
}

// tree sums up the samples. A collapsed file already is a tree, which has more facts than samples made from it.
func (w *watched) tree(o recording.SumOptions) (*output.Tree, error) {
	f, ok := w.Source.(*recording.File)
	if !ok || f.Tree() == nil {
		return recording.TreeOf(w, o)
	}
	tree, err := recording.TreeOf(f, o)
	if err != nil {
		return nil, err
	}
	return tree, w.Each(func(*profile.Sample) error { return nil })
}

func writeTree(to io.Writer, f format.Format, src *watched, o Options) error {
	tree, err := src.tree(o.Sum)
	if err != nil {
		return err
	}
	if f == format.JSON {
		tree = tree.Shaped(o.Shape)
		r, err := output.NewReport(tree, "method")
		if err != nil {
			return err
		}
		if mode := src.Info().Meta.Mode; mode != profile.ModeCPU {
			r.Mode = mode
		}
		return r.JSON(to)
	}
	tree, whole := tree.Drawn(o.Shape.Drawn())
	var page flame.Options
	if o.Page != nil {
		page = o.Page(tree)
	}
	page.Whole = whole
	if f == format.SVG {
		return flame.SVG(to, tree, page)
	}
	return flame.Page(to, tree, page)
}
