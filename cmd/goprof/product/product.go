//go:build linux

package product

import (
	"errors"
	"io"
	"time"

	"goprof/cmd/goprof/caption"
	"goprof/output"
	"goprof/output/flame"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/session"
)

// Product is the file of a recording. There are three kinds: sums, which are written at the end; a JFR file, which
// grows during the recording; and files that are converted from a JFR file at the end.
type Product interface {
	// Start is called before the recording. If the returned Sink is not nil, it gets the samples. stop ends the
	// recording, for failures after which there is no use in continuing.
	Start(about session.Facts, stop func()) session.Sink
	// SoFar writes the samples so far, during the recording.
	SoFar(r *Recorded) (name string, err error)
	// EndSoon is called when the recording ends.
	EndSoon()
	// Finish writes the rest, and returns the name of the file.
	Finish(r *Recorded) (name string, err error)
	// Discard leaves no file, and does not touch an older file. It returns the first failure.
	Discard() error
	// File returns the file that the product is written to.
	File() *outfile.File
}

// Recorded is a recording up to a moment.
type Recorded struct {
	Profile *profile.Profile
	Summary *profile.Summary
	At      profile.Instant
}

// ErrAtEnd says that a product can only be written at the end.
var ErrAtEnd = errors.New("all of it is written at the end")

// Options say how a product is written.
type Options struct {
	Version string        // of goprof
	Chunk   time.Duration // length of a JFR chunk, which is all that a crash loses; 0: a minute
	Tell    func(string)  // receives messages about data that a format cannot hold
	// nameless says that the result must not contain the name of its file. The file may be renamed before it is passed
	// on.
	nameless bool
}

// New makes the product for a format.
func New(of format.Format, file *outfile.File, o Options) (Product, error) {
	switch of {
	case format.JFR:
		return newJFR(file, file.Grow(), o), nil
	case format.HTML:
		return &sumProduct{to: file, write: writeDrawing(o.Version, flame.Page)}, nil
	case format.SVG:
		return &sumProduct{to: file, write: writeDrawing(o.Version, flame.SVG)}, nil
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
	write func(io.Writer, *Recorded) error
}

func (p *sumProduct) EndSoon() {}

func (p *sumProduct) File() *outfile.File { return p.to }

func (p *sumProduct) Discard() error { return nil }

func (p *sumProduct) Start(session.Facts, func()) session.Sink { return nil }

// SoFar writes a file that is written again at the end. It fails for a stream.
func (p *sumProduct) SoFar(r *Recorded) (string, error) {
	if p.to.IsStream() {
		return "", ErrAtEnd
	}
	return p.put(r)
}

func (p *sumProduct) Finish(r *Recorded) (string, error) { return p.put(r) }

func (p *sumProduct) put(r *Recorded) (string, error) {
	return p.to.Write(func(w io.Writer) error { return p.write(w, r) })
}

func writeCollapsed(w io.Writer, r *Recorded) error { return output.Collapsed(w, r.Profile) }

// writeDrawing draws like "goprof flame" with a collapsed file and its summary.
func writeDrawing(version string,
	draw func(io.Writer, *output.Tree, flame.Options) error) func(io.Writer, *Recorded) error {
	return func(w io.Writer, r *Recorded) error {
		tree, whole := output.TreeOf(r.Profile).Drawn(output.Shape{}.Drawn())
		info := recording.Info{Meta: r.Summary.Meta, Summary: r.Summary}
		o := caption.Drawing(version, outfile.Stdout, "", tree, &info)
		o.Whole = whole
		return draw(w, tree, o)
	}
}

func writeTable(w io.Writer, r *Recorded) error {
	table, err := output.NewReport(output.TreeOf(r.Profile), "method")
	if err != nil {
		return err
	}
	table.Mode = caption.Mode(&r.Summary.Meta)
	return table.JSON(w)
}
