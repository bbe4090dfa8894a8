//go:build linux

package product

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"goprof/output/convert"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/output/recording"
	"goprof/session"
)

// convertedProduct is for formats that need all samples with their times. It is written at the end. Until then the
// samples are in a spool: a JFR file without a name.
type convertedProduct struct {
	to     *outfile.File
	as     format.Format
	o      Options
	spool  *os.File
	stream *JFR
}

func newConverted(to *outfile.File, as format.Format, o Options) (Product, error) {
	spool, err := to.Spool()
	if err != nil {
		return nil, err
	}
	return &convertedProduct{to: to, as: as, o: o, spool: spool,
		stream: newSpooled(to, spool, o)}, nil
}

func (p *convertedProduct) File() *outfile.File { return p.to }

func (p *convertedProduct) Start(about session.Facts, stop func()) session.Sink {
	return p.stream.Start(about, stop)
}

func (p *convertedProduct) SoFar(r *Recorded) (string, error) {
	if p.to.IsStream() {
		return "", ErrAtEnd
	}
	if _, err := p.stream.SoFar(r); err != nil {
		return "", err
	}
	return p.write()
}

// Finish writes the result. If the disk of the spool was full, the result holds the samples up to then.
func (p *convertedProduct) Finish(r *Recorded) (string, error) {
	defer p.spool.Close()
	if _, err := p.stream.Finish(r); err != nil {
		if p.stream.writer.Written() > 0 {
			_, err2 := p.write()
			err = errors.Join(err, err2)
		}
		return "", err
	}
	return p.write()
}

// write converts the samples of the spool, and returns the name of the result.
func (p *convertedProduct) write() (string, error) {
	file, err := recording.Open(fmt.Sprintf("/proc/self/fd/%d", p.spool.Fd()), recording.Options{})
	if err != nil {
		return "", &outfile.FileError{Name: p.to.Name(), Err: err}
	}
	defer file.Close()
	name := p.to.Name()
	if p.o.nameless {
		name = outfile.Stdout
	}
	return p.to.Write(func(w io.Writer) error {
		_, err := convert.Write(w, p.as, spooledRecording{file, name}, convert.Options{Tell: p.o.Tell})
		return err
	})
}

func (p *convertedProduct) EndSoon() { p.stream.EndSoon() }

func (p *convertedProduct) Discard() error {
	defer p.spool.Close()
	return p.stream.Discard()
}

func newSpooled(to *outfile.File, spool *os.File, o Options) *JFR {
	return newJFR(to, spooled{spool, to}, o)
}

// spooled is a spool. Unlike an outfile.Growing it stays open, because it is read later.
type spooled struct {
	*os.File
	to *outfile.File
}

func (spooled) Publish() error { return nil }
func (spooled) EndSoon()       {}
func (spooled) Close() error   { return nil }
func (s spooled) Name() string { return s.to.Name() }

// spooledRecording is the recording in a spool, with the name that the user gave.
type spooledRecording struct {
	*recording.File
	name string
}

func (r spooledRecording) Info() recording.Info {
	info := r.File.Info()
	if info.Name = filepath.Base(format.Trim(r.name)); r.name == outfile.Stdout {
		info.Name = "goprof"
	}
	return info
}
