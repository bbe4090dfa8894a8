//go:build linux

package main

import (
	"errors"
	"io"
	"time"

	"goprof/output"
	"goprof/output/flame"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/session"
)

// product is the file that a recording becomes. There are three sorts: sums, which are written when all is known
// (sumProduct); streams, which grow while the recording goes on (jfrProduct); and what is made of a stream at the end
// (convertedProduct).
type product interface {
	// begin is called before the recording. The Sink that it returns is given the samples, if it is not nil. stop ends
	// the recording: there is no use in going on.
	begin(about session.Facts, stop func()) session.Sink
	// soFar writes what was recorded so far, while the recording goes on.
	soFar(r *soFar) (name string, err error)
	// finish writes the rest, and returns the name of the file.
	finish(r *soFar) (name string, err error)
	// discard leaves no file, and does not touch a file that was there before. It returns what has gone wrong so far.
	discard() error
	// file is the file that the product is written to.
	file() *outfile.File
}

// soFar is what was recorded so far.
type soFar struct {
	profile *profile.Profile
	summary *profile.Summary
	at      profile.Instant
}

// errAtEnd says that a product can be written only at the end.
var errAtEnd = errors.New("all of it is written at the end")

// productOptions say how a product is written.
type productOptions struct {
	chunk time.Duration // of JFR: a crash loses at most so much; 0 is a minute
	tell  func(string)  // called with what a format had no room for
	// nameless says that the result must not contain the name of its file. The file may be renamed before it is given
	// away.
	nameless bool
}

// newProduct makes the product of a format.
func newProduct(of format.Format, file *outfile.File, o productOptions) (product, error) {
	switch of {
	case format.JFR:
		return &jfrProduct{to: file, growing: file.Grow(), o: o}, nil
	case format.HTML:
		return &sumProduct{to: file, write: writeDrawing(flame.Page)}, nil
	case format.SVG:
		return &sumProduct{to: file, write: writeDrawing(flame.SVG)}, nil
	case format.JSON:
		return &sumProduct{to: file, write: writeTable}, nil
	case format.Collapsed:
		return &sumProduct{to: file, write: writeCollapsed}, nil
	}
	return newConverted(file, of, o)
}

// sumProduct is written at the end, from the sum of all samples.
type sumProduct struct {
	to    *outfile.File
	write func(io.Writer, *soFar) error
}

func (p *sumProduct) file() *outfile.File { return p.to }

func (p *sumProduct) discard() error { return nil }

func (p *sumProduct) begin(session.Facts, func()) session.Sink { return nil }

// soFar writes a file that is written again at the end. A stream cannot be written again.
func (p *sumProduct) soFar(r *soFar) (string, error) {
	if p.to.IsStream() {
		return "", errAtEnd
	}
	return p.put(r)
}

func (p *sumProduct) finish(r *soFar) (string, error) { return p.put(r) }

func (p *sumProduct) put(r *soFar) (string, error) {
	return p.to.Write(func(w io.Writer) error { return p.write(w, r) })
}

func writeCollapsed(w io.Writer, r *soFar) error { return output.Collapsed(w, r.profile) }

// writeDrawing draws as "goprof flame" does of a collapsed file with its summary.
func writeDrawing(draw func(io.Writer, *output.Tree, flame.Options) error) func(io.Writer, *soFar) error {
	return func(w io.Writer, r *soFar) error {
		tree, whole := output.TreeOf(r.profile).Drawn(output.Shape{}.Drawn())
		info := recording.Info{Meta: r.summary.Meta, Summary: r.summary}
		o := drawingOf(outfile.Stdout, "", tree, &info)
		o.Whole = whole
		return draw(w, tree, o)
	}
}

// writeTable writes what "goprof report --json" writes.
func writeTable(w io.Writer, r *soFar) error {
	table, err := output.NewReport(output.TreeOf(r.profile), "method", 0)
	if err != nil {
		return err
	}
	table.Mode = otherMode(&r.summary.Meta)
	return table.JSON(w)
}
