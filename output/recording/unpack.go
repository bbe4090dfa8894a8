package recording

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"os"

	"goprof/output"
	"goprof/output/outfile"
)

// A packed file may unpack to freeUnpacked bytes, and to unpackedOfByte more for each of its own bytes, but to no more
// than maxUnpacked. Recordings unpack to up to 40 times their size, a malicious file to 1,000 times.
const (
	freeUnpacked   = 16 << 20
	unpackedOfByte = 100
	maxUnpacked    = 1 << 30
)

// unpacked is the content of a packed file.
type unpacked struct {
	z    io.Reader
	from *countedReader
	n    int64
}

func unpack(from *bufio.Reader) (*unpacked, error) {
	u := &unpacked{from: &countedReader{Reader: from}}
	z, err := gzip.NewReader(u.from)
	u.z = z
	return u, damaged(err)
}

func (u *unpacked) Read(to []byte) (int, error) {
	n, err := u.z.Read(to)
	if u.n += int64(n); u.n > min(maxUnpacked, freeUnpacked+unpackedOfByte*u.from.n) {
		return 0, &output.BadFile{Problem: "it unfolds to more than a packed file of its size may", TooMuch: true}
	}
	return n, damaged(err)
}

type countedReader struct {
	*bufio.Reader
	n int64
}

func (c *countedReader) Read(to []byte) (int, error) {
	n, err := c.Reader.Read(to)
	c.n += int64(n)
	return n, err
}

func (c *countedReader) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// maxSpooled bounds the bytes that are read from a stream or a packed file.
const maxSpooled = 4 << 30

// Spool copies a recording from a stream into a temporary file without a name, and unpacks it. It returns the file and
// its size.
func Spool(from *bufio.Reader, packed bool) (file *os.File, size int64, err error) {
	if file, err = outfile.Unnamed(); err != nil {
		return nil, 0, err
	}
	var content io.Reader = from
	if packed {
		content, err = unpack(from)
	}
	if err == nil {
		size, err = io.Copy(file, &output.Bounded{From: content, Left: maxSpooled, Problem: "more than is read of a pipe"})
	}
	if err != nil {
		file.Close()
		return nil, 0, damaged(err)
	}
	return file, size, nil
}

// damaged turns an error of unpacking into an error about the file.
func damaged(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &corrupt) {
		return &output.BadFile{Problem: "it is packed, but damaged: " + err.Error()}
	}
	return err
}
