//go:build linux

package main

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

// convertedProduct has a format that needs all samples with their times. It is written at the end. Until then the
// samples are in a spool: a JFR file without a name.
type convertedProduct struct {
	to     *outfile.File
	as     format.Format
	o      productOptions
	spool  *os.File
	stream *jfrProduct
}

func newConverted(to *outfile.File, as format.Format, o productOptions) (product, error) {
	spool, err := to.Spool()
	if err != nil {
		return nil, err
	}
	return &convertedProduct{to: to, as: as, o: o, spool: spool,
		stream: &jfrProduct{to: to, growing: spooled{spool, to}, o: o}}, nil
}

func (p *convertedProduct) file() *outfile.File { return p.to }

func (p *convertedProduct) begin(about session.Facts, stop func()) session.Sink {
	return p.stream.begin(about, stop)
}

func (p *convertedProduct) soFar(r *soFar) (string, error) {
	if p.to.IsStream() {
		return "", errAtEnd
	}
	if _, err := p.stream.soFar(r); err != nil {
		return "", err
	}
	return p.write()
}

// finish writes the result. If the spool's disk was full, the result holds what was recorded before.
func (p *convertedProduct) finish(r *soFar) (string, error) {
	defer p.spool.Close()
	if _, err := p.stream.finish(r); err != nil {
		if p.stream.writer.Written() > 0 {
			_, err2 := p.write()
			err = errors.Join(err, err2)
		}
		return "", err
	}
	return p.write()
}

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
		_, err := convert.Write(w, p.as, spooledRecording{file, name}, convert.Options{Tell: p.o.tell})
		return err
	})
}

func (p *convertedProduct) discard() error {
	defer p.spool.Close()
	return p.stream.discard()
}

// spooled is a spool. Unlike an outfile.Growing it stays open for its reader.
type spooled struct {
	*os.File
	to *outfile.File
}

func (spooled) Publish() error { return nil }
func (spooled) EndSoon()       {}
func (spooled) Close() error   { return nil }
func (s spooled) Name() string { return s.to.Name() }

// spooledRecording is the recording in a spool, under the name that the user knows.
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
