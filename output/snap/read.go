package snap

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"goprof/output"
)

// Bounds of reading. A part of a snap has up to 60 bytes for each packed byte. A malicious file may have 1,000.
const (
	maxTable       = 1 << 20 // bytes of the zip's own table
	maxFiles       = 512
	maxContents    = 1 << 20
	freeUnpacked   = 64 << 20
	unpackedOfByte = 200
	maxUnpacked    = 1 << 30
)

type Reader struct {
	zip   *zip.Reader
	close func() error
}

// Is reports whether a file with this beginning may be a snap: it is a zip.
func Is(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// IsNamed reports whether the file with this name may be a snap.
func IsNamed(name string) bool { return Is(Head(name, 4)) }

// Head returns the first n bytes of a regular file. It returns fewer for a short file, and none if the file cannot be
// read.
func Head(name string, n int) []byte {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	head := make([]byte, n)
	n, _ = io.ReadFull(file, head)
	return head[:n]
}

// Open opens a snap. If the file cannot be opened, it returns the error of package os.
func Open(name string) (*Reader, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	var r *Reader
	if err == nil {
		r, err = Read(file, info.Size())
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	r.close = file.Close
	return r, nil
}

// maxSize bounds a file. Before archive/zip reads the table, it allocates as many entries as a file of that size can
// have.
const maxSize = 4 << 30

func Read(file io.ReaderAt, size int64) (*Reader, error) {
	if size > maxSize {
		return nil, &output.BadFile{Problem: "it is longer than a snap can be", TooMuch: true}
	}
	table := &tableReader{file: file, left: maxTable}
	z, err := zip.NewReader(table, size)
	switch {
	case table.left < 0:
		return nil, &output.BadFile{Problem: "its table of files is too long", TooMuch: true}
	case err != nil:
		return nil, &output.BadFile{Problem: "it begins like a zip, but is damaged: " + err.Error()}
	case len(z.File) > maxFiles:
		return nil, &output.BadFile{Problem: fmt.Sprintf("%d files in it", len(z.File)), TooMuch: true}
	}
	table.open = true
	return &Reader{zip: z}, nil
}

// tableReader bounds how much is read before the table is complete.
type tableReader struct {
	file io.ReaderAt
	left int64
	open bool
}

func (t *tableReader) ReadAt(to []byte, at int64) (int, error) {
	if !t.open {
		if t.left -= int64(len(to)); t.left < 0 {
			return 0, errors.New("too long")
		}
	}
	return t.file.ReadAt(to, at)
}

func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// NoPart: a snap does not have a file.
type NoPart struct{ Name, Why string }

func (e *NoPart) Error() string {
	if e.Why != "" {
		return "it holds no " + e.Name + ": " + e.Why
	}
	return "it holds no " + e.Name
}

func (r *Reader) File(name string) (io.ReadCloser, error) {
	at := slices.IndexFunc(r.zip.File, func(f *zip.File) bool { return f.Name == name })
	if at < 0 {
		return nil, r.noPart(name)
	}
	f := r.zip.File[at]
	most := min(maxUnpacked, freeUnpacked+unpackedOfByte*f.CompressedSize64)
	if f.UncompressedSize64 > most {
		return nil, tooMuch(name)
	}
	content, err := f.Open()
	if err != nil {
		return nil, damaged(name, err)
	}
	return &unfolding{content, name, int64(most)}, nil
}

// noPart returns why there is no file, by the table of contents.
func (r *Reader) noPart(name string) error {
	if name == ContentsFile {
		return &output.BadFile{Problem: "it is a zip, but none of goprof snap: it holds no " + name}
	}
	c, err := r.Contents()
	if err != nil {
		return err
	}
	for _, p := range c.Parts {
		if p.State != Kept && holds(p.Name, name) {
			return &NoPart{name, p.Why}
		}
	}
	return &NoPart{Name: name}
}

// holds reports whether a file belongs to a part, as "dump.json" belongs to "dump".
func holds(part, file string) bool {
	rest, ok := bytes.CutPrefix([]byte(file), []byte(part))
	return ok && len(rest) > 0 && rest[0] == '.'
}

func (r *Reader) Contents() (*Contents, error) {
	file, err := r.File(ContentsFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxContents+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxContents:
		return nil, tooMuch(ContentsFile)
	}
	var c Contents
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, &output.BadFile{Problem: ContentsFile + " in it cannot be read"}
	}
	return &c, nil
}

// unfolding ends a file that unpacks to too much, whatever size the zip claims.
type unfolding struct {
	io.ReadCloser
	name string
	left int64
}

func (b *unfolding) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	if b.left -= int64(n); b.left < 0 {
		return 0, tooMuch(b.name)
	}
	if err != nil && err != io.EOF {
		err = damaged(b.name, err)
	}
	return n, err
}

func tooMuch(name string) error {
	return &output.BadFile{Problem: fmt.Sprintf("%q in it unfolds to more than a file of a snap may", name), TooMuch: true}
}

func damaged(name string, err error) error {
	return &output.BadFile{Problem: fmt.Sprintf("%q in it is damaged: %v", name, err)}
}
