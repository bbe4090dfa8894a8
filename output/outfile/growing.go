package outfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Growing is a file that is written piece by piece and used before it is complete. It has a hidden name in the same
// folder until Publish gives it its final name. So an older file of that name is replaced only by a file with contents.
// A stream (a pipe, standard output) is written at once. All rules of File hold. Growing is not safe for concurrent
// use.
type Growing struct {
	f    *File
	out  *patient   // for a stream; nil for a file
	file *temporary // nil before the first Write
	open bool       // it has its final name
	done bool
}

// Grow begins to write the file. Before the first Write, it makes no file.
func (f *File) Grow() *Growing {
	g := &Growing{f: f}
	switch {
	case f.name == Stdout:
		g.out = newPatient(os.Stdout)
	case f.stream != nil:
		g.out = newPatient(f.stream)
	}
	return g
}

// EndSoon says that only the end of the file is still to be written. From then on, goprof waits only a short time for a
// stream's reader. Any goroutine may call it at any time.
func (g *Growing) EndSoon() {
	if g.out != nil {
		g.out.endSoon()
	}
}

func (g *Growing) Write(b []byte) (int, error) {
	to, err := g.to()
	if err != nil {
		return 0, plain(err)
	}
	n, err := to.Write(b)
	if err != nil {
		err = plain(err)
	}
	return n, err
}

// to returns the file for the next piece. The first call makes the file.
func (g *Growing) to() (io.Writer, error) {
	switch {
	case g.done:
		return nil, fs.ErrClosed
	case g.out != nil:
		return g.out, nil
	case g.file != nil:
		return g.file, nil
	}
	file, err := g.f.temp()
	if err != nil {
		return nil, err
	}
	g.file = file
	return file, nil
}

var errStream = errors.New("what is no file keeps all that was written to it")

// With Truncate and Seek, a writer can remove a last piece that was written only in part.
func (g *Growing) Truncate(size int64) error {
	if g.file == nil {
		return errStream
	}
	return g.file.Truncate(size)
}

func (g *Growing) Seek(offset int64, whence int) (int64, error) {
	if g.file == nil {
		return 0, errStream
	}
	return g.file.Seek(offset, whence)
}

// Publish gives the file its final name, once. More may be written afterwards.
func (g *Growing) Publish() error {
	if g.file == nil || g.open {
		return nil
	}
	if err := g.f.take(g.file); err != nil {
		return &FileError{g.f.name, plain(err)}
	}
	g.open = true
	return nil
}

// Name returns the file's final name.
func (g *Growing) Name() string { return g.f.name }

// Close ends a file. A published file stays, and another one is removed.
func (g *Growing) Close() error {
	if g.done {
		return nil
	}
	g.done = true
	var err error
	switch {
	case g.f.stream != nil:
		err = g.f.closeStream()
	case g.file != nil:
		err = errors.Join(g.file.Sync(), g.file.Close()) // some file systems report only now that they are full
		if !g.open {
			err = errors.Join(err, g.file.remove())
		}
	}
	if err != nil {
		return &FileError{g.f.name, plain(err)}
	}
	return nil
}

// Spool makes a file for intermediate data. It is in the folder of the result, or among the temporary files if the
// result is a stream. The file has no name any more, so nothing of it remains, however goprof ends.
func (f *File) Spool() (*os.File, error) {
	spool, err := f.spool()
	if err != nil {
		return nil, &FileError{f.name, plain(err)}
	}
	return spool, nil
}

func (f *File) spool() (*os.File, error) {
	if f.IsStream() {
		return Unnamed()
	}
	temp, err := f.temp()
	if err != nil {
		return nil, err
	}
	if err := temp.remove(); err != nil {
		return nil, errors.Join(err, temp.Close())
	}
	return temp.File, nil
}

// Unnamed makes a file without a name among the temporary files.
func Unnamed() (*os.File, error) {
	file, err := os.CreateTemp("", "goprof-*.tmp")
	if err == nil {
		if err = os.Remove(file.Name()); err != nil {
			file.Close()
		}
	}
	return file, err
}
