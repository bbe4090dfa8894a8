package outfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"goprof/output/format"
)

// Stdout is the name for standard output.
const Stdout = "-"

// readerWait bounds how long a pipe may be without a reader.
const readerWait = 5 * time.Second

// maxNumber bounds the search for a free number.
const maxNumber = 100_000

// File is a place for a result. A file appears under its name only when it is complete: goprof writes it in the same
// folder, readable only by its owner, and renames it. goprof never writes through a symbolic link. In a folder where
// all users may put files, it never writes to another user's file (isForeign). If the user did not choose the name, a
// new file replaces an old one only if goprof has drawn both from the same recording (ReserveAgain).
//
// The folder is opened when the file is reserved, and everything else happens in that folder. If the folder is moved
// and replaced by a link, goprof does not follow the link.
type File struct {
	name     string // the user's name for it
	folder   *os.Root
	base     string // its name in the folder
	numbered bool
	beside   func(string) string // for a numbered file: a second name that must be free
	mark     string              // a file with this beginning is replaced, although the name is numbered
	stream   *os.File            // a pipe, a device, or an inherited descriptor, opened when it was reserved
}

// FileError says which file could not be written and why.
type FileError struct {
	Name string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("cannot write %s: %v", e.Name, e.Err) }
func (e *FileError) Unwrap() error { return e.Err }

var (
	// ErrLink: the name is a symbolic link.
	ErrLink = errors.New("goprof writes through no symbolic link")
	// ErrForeign: the file belongs to another user, in a folder to which all users may write.
	ErrForeign = errors.New("anybody may put such a thing into this folder, so goprof writes only to what is its own " +
		"user's there")
	// ErrNoReader: the file is a pipe without a reader.
	ErrNoReader = fmt.Errorf("it is a pipe without a reader (goprof waited for %v)", readerWait)
)

// Expand replaces %p with a pid and %t with a time in a file's name. %% is a percent sign.
func Expand(name string, pid int, t time.Time) string {
	return strings.NewReplacer("%%", "%", "%p", strconv.Itoa(pid), "%t", t.Format("20060102-150405")).Replace(name)
}

// Name returns the name of the file, which may not exist yet.
func (f *File) Name() string { return f.name }

// Reserve checks that a file of this name can be written, so that a recording does not fail at its end: the folder must
// exist and accept files. If the file already exists, it will be replaced.
func Reserve(name string) (*File, error) { return reserve(&File{name: name}) }

// ReserveNumbered is Reserve for a name that the user did not choose: if out.collapsed exists, out.1.collapsed is
// written, and so on. beside, if not nil, returns the name of a second file that will be written with the first. Then a
// number is used only if both names are free.
func ReserveNumbered(name string, beside func(string) string) (*File, error) {
	return reserve(&File{name: name, numbered: true, beside: beside})
}

// ReserveAgain is ReserveNumbered for a picture of another file. An existing file that begins with mark was drawn by
// goprof from the same file, so it is replaced.
func ReserveAgain(name, mark string) (*File, error) {
	return reserve(&File{name: name, numbered: true, mark: mark})
}

const markedWithin = 1024

func (f *File) isMarked() bool {
	named, err := f.folder.Lstat(f.base)
	if err != nil || !named.Mode().IsRegular() {
		return false
	}
	file, err := f.folder.OpenFile(f.base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	if opened, err := file.Stat(); err != nil || !os.SameFile(named, opened) {
		return false
	}
	begins := make([]byte, markedWithin)
	n, _ := io.ReadFull(file, begins)
	return bytes.Contains(begins[:n], []byte(f.mark))
}

// IsStream reports whether written data leave goprof at once (standard output, a pipe or a device), so that later data
// cannot replace them.
func (f *File) IsStream() bool { return f.name == Stdout || f.stream != nil }

// reserve opens the folder of a file, and checks that the file may be written.
func reserve(f *File) (*File, error) {
	if f.name == Stdout || !f.numbered && f.isInherited() {
		return f, nil
	}
	var err error
	if f.folder, err = openFolder(filepath.Dir(f.name)); err == nil {
		f.base = filepath.Base(f.name)
		if f.mark != "" && f.isMarked() {
			f.numbered = false
		}
		err = f.check()
	}
	if err != nil {
		return nil, &FileError{f.name, plain(err)}
	}
	return f, nil
}

// ReserveIn is Reserve for a file in a folder that the caller has opened. name is the file's name in messages.
func ReserveIn(folder *os.Root, base, name string) (*File, error) {
	f := &File{name: name, folder: folder, base: base}
	if err := f.check(); err != nil {
		return nil, &FileError{name, plain(err)}
	}
	return f, nil
}

// openFolder opens a folder. It first checks that it is a folder: opening a pipe would wait for a writer.
func openFolder(name string) (*os.Root, error) {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(name)
}

// check refuses names under which goprof must not write: links, folders, files of other users.
func (f *File) check() error {
	info, err := f.folder.Lstat(f.base)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && f.numbered:
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return f.linkError(info)
	case info.IsDir():
		return errors.New("it is a folder")
	case isForeign(f.folder, info):
		return fmt.Errorf("it is %s, and %w", ownedBy(info), ErrForeign)
	case !info.Mode().IsRegular():
		f.stream, err = openStream(f.folder, f.base, info)
		return err
	}
	temp, err := f.temp()
	if err != nil {
		return err
	}
	temp.Close()
	return temp.remove()
}

// linkError says where a link leads: its maker may want goprof to write there.
func (f *File) linkError(info fs.FileInfo) error {
	to, err := f.folder.Readlink(f.base)
	if err != nil {
		to = "?"
	}
	return fmt.Errorf("it is a symbolic link to %s (%s), and %w", to, ownedBy(info), ErrLink)
}

// Write writes the whole file and returns its name. A second call replaces what the first one wrote. A stream
// (IsStream) can be written only once.
func (f *File) Write(write func(io.Writer) error) (string, error) {
	name := f.name
	var err error
	switch {
	case f.name == Stdout:
		err = buffered(os.Stdout, write)
	case f.stream != nil:
		err = errors.Join(buffered(f.stream, write), f.closeStream())
	default:
		name, err = f.writeBeside(write)
	}
	if err != nil {
		return "", &FileError{f.name, plain(err)}
	}
	return name, nil
}

// buffers are reused: an agent writes small files all the time.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

func buffered(to io.Writer, write func(io.Writer) error) error {
	b := buffers.Get().(*bufio.Writer)
	defer buffers.Put(b)
	defer b.Reset(nil)
	b.Reset(to)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

// closeStream closes a stream, so that its reader sees the end.
func (f *File) closeStream() error {
	if f.stream == os.Stdout || f.stream == os.Stderr {
		return nil
	}
	return f.stream.Close()
}

// writeBeside writes a temporary file in the same folder, and then gives it the file's name.
func (f *File) writeBeside(write func(io.Writer) error) (string, error) {
	temp, err := f.temp()
	if err != nil {
		return "", err
	}
	defer temp.remove() // already gone after success
	err = buffered(temp, write)
	if err == nil {
		err = temp.Sync() // some file systems report only now that they are full
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return "", err
	}
	if err := f.take(temp); err != nil {
		return "", err
	}
	return f.name, nil
}

// take gives a temporary file its final name.
func (f *File) take(temp *temporary) error {
	if !f.numbered {
		err := f.folder.Rename(temp.base, f.base)
		if err == nil {
			temp.finished()
		}
		return err
	}
	base, err := f.place(temp.base)
	if err != nil {
		return err
	}
	temp.remove() // removes the other name, if the file has two
	// From now on the name belongs to this File.
	f.name, f.base, f.numbered = filepath.Join(filepath.Dir(f.name), base), base, false
	return nil
}

// place gives a complete file the first free number.
func (f *File) place(temp string) (string, error) {
	for n := range maxNumber {
		name := f.number(n)
		if f.beside != nil {
			if _, err := f.folder.Lstat(f.beside(name)); err == nil {
				continue
			}
		}
		err := f.folder.Link(temp, name) // fails if the name exists
		if err == nil {
			return name, nil
		}
		if _, statErr := f.folder.Lstat(name); statErr == nil {
			continue
		}
		// A file system without hard links. An empty file holds the name in the meantime.
		hold, err := f.folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		hold.Close()
		return name, f.folder.Rename(temp, name)
	}
	return "", fmt.Errorf("%d files of that name are there", maxNumber)
}

func (f *File) number(n int) string {
	if n == 0 {
		return f.base
	}
	stem := format.Trim(f.base)
	return fmt.Sprintf("%s.%d%s", stem, n, f.base[len(stem):])
}

// plain removes the operation and the name of a temporary file from an error.
func plain(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	if l := (*os.LinkError)(nil); errors.As(err, &l) {
		return l.Err
	}
	return err
}

// OpenRegular opens a regular file for reading. It follows no link, and does not wait for a pipe.
func OpenRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errors.New("it is a symbolic link")
	}
	if err != nil {
		return nil, plain(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
