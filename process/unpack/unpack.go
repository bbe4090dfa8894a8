// Package unpack opens a core file that may be compressed by gzip, zstd or lz4, as systemd-coredump does.
//
// goprof reads a core in random order, which none of these formats allows. So it unpacks the core into a temporary
// file, in which long runs of zeros take no space. The temporary file has no name. (On systems other than Linux and
// macOS it has a name until it is closed.) It is an error if the unpacked file exceeds the limit or the free space. An
// uncompressed file is read directly.
package unpack

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

var (
	// ErrTooLarge: the unpacked file would exceed the limit.
	ErrTooLarge = errors.New("it unpacks to more than may be")
	// ErrNoRoom: the disk for temporary files is too small.
	ErrNoRoom = errors.New("the folder for temporary files has no room for it unpacked")
	// ErrXZ: xz's dictionaries would need more memory than goprof may use.
	ErrXZ = errors.New("goprof does not read xz")
	// ErrNotRegular: a pipe, a folder or a device.
	ErrNotRegular = errors.New("it is not a regular file")
	ErrEmpty      = errors.New("it is empty once unpacked")
)

const (
	// MaxSize is the largest unpacked core.
	MaxSize = 1 << 40
	// maxWindow bounds the memory for unpacking. zstd needs no more without its option --long.
	maxWindow = 128 << 20
	// spare is the number of bytes of the disk that stay free.
	spare = 1 << 30
	// checkEvery is the number of bytes between two checks of the free space.
	checkEvery = 64 << 20
)

// File is an unpacked file, or a file that was not compressed.
type File struct {
	*os.File
	Size int64
	// Packed is the compression: gzip, zstd, lz4; empty if there was none.
	Packed string
	remove string
}

// Close closes the file, and removes the temporary file.
func (f *File) Close() error {
	err := f.File.Close()
	if f.remove != "" {
		os.Remove(f.remove)
	}
	return err
}

// Open opens a file, and unpacks it if it is compressed. If the file is damaged or its end is missing, Open returns an
// error together with a File that has the bytes before the damage.
func Open(name string) (*File, error) {
	st, err := os.Stat(name) // first, because opening a pipe may block
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 6)
	n, _ := f.ReadAt(head, 0)
	packed, reader := formatOf(head[:n])
	if packed == "" {
		return &File{File: f, Size: st.Size()}, nil
	}
	defer f.Close()
	if reader == nil {
		return nil, ErrXZ
	}
	from, err := reader(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", packed, err)
	}
	out, err := unpackTo(from, MaxSize)
	if out != nil {
		out.Packed = packed
	}
	return out, err
}

// formatOf recognises a format by its first bytes. name is empty for a file that is not compressed; reader is nil for
// xz.
func formatOf(head []byte) (name string, reader func(io.Reader) (io.Reader, error)) {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd", func(r io.Reader) (io.Reader, error) {
			return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxWindow))
		}
	case bytes.HasPrefix(head, lz4Magic):
		return "lz4", func(r io.Reader) (io.Reader, error) { return newLZ4(r), nil }
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return "xz", nil
	}
	return "", nil
}

func unpackTo(from io.Reader, limit int64) (*File, error) {
	file, err := os.CreateTemp("", "goprof-core-")
	if err != nil {
		return nil, err
	}
	out := &File{File: file}
	if os.Remove(file.Name()) != nil {
		out.remove = file.Name() // this system cannot remove an open file
	}
	err = out.fill(from, limit)
	switch {
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrNoRoom), out.Size == 0:
		out.Close()
		return nil, cmp.Or(err, ErrEmpty)
	}
	return out, err
}

// fill writes the unpacked bytes. It skips blocks of zeros, so the file has holes there.
func (f *File) fill(from io.Reader, limit int64) error {
	b := make([]byte, 64<<10)
	zeros := make([]byte, len(b))
	written := int64(checkEvery) // so that the free space is checked before the first write
	for {
		n, err := io.ReadFull(from, b)
		if f.Size+int64(n) > limit {
			return ErrTooLarge
		}
		if written >= checkEvery {
			if room, known := roomFor(f.File); known && room < checkEvery+spare {
				return ErrNoRoom
			}
			written = 0
		}
		if n > 0 && !bytes.Equal(b[:n], zeros[:n]) {
			if _, err := f.File.WriteAt(b[:n], f.Size); err != nil {
				return errors.Join(ErrNoRoom, err)
			}
			written += int64(n)
		}
		f.Size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && n < len(b) && ended(from) {
			return f.File.Truncate(f.Size)
		}
		if err != nil {
			f.File.Truncate(f.Size)
			return err
		}
	}
}

// ended reports whether a stream has ended and was not cut off. A reader at its end returns io.EOF each time.
func ended(from io.Reader) bool {
	_, err := from.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}
