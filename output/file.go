package output

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"goprof/output/format"
)

// Stdout is the name that means standard output.
const Stdout = "-"

// readerWait is how long a pipe may be without a reader.
const readerWait = 5 * time.Second

// maxNumber bounds the search for a free number.
const maxNumber = 100_000

// File is a place where a result will be written. A file appears under its name only when it is complete: goprof
// writes it beside its place, readable by its owner only, and renames it. goprof never writes through a symbolic
// link, nor to anything that another user has put where all users may (isForeign). A file under a name that the user
// did not choose never replaces anything.
type File struct {
	name     string
	numbered bool
	beside   func(string) string // of a numbered file: a name that must be free, too
	stream   *os.File            // a pipe, a device, or an inherited descriptor: opened when it was reserved
}

// FileError says which file could not be written and why.
type FileError struct {
	Name string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("cannot write %s: %v", e.Name, e.Err) }
func (e *FileError) Unwrap() error { return e.Err }

var (
	// ErrLink refuses a name that is a symbolic link.
	ErrLink = errors.New("goprof writes through no symbolic link")
	// ErrForeign refuses something that another user has put into a folder to which all users may write.
	ErrForeign = errors.New("anybody may put such a thing into this folder, so goprof writes only to what is its own " +
		"user's there")
	// ErrNoReader refuses a pipe without a reader.
	ErrNoReader = fmt.Errorf("it is a pipe that nobody reads (goprof waited for %v)", readerWait)
)

// Expand puts a pid for %p and a time for %t into a file's name; %% is a percent sign.
func Expand(name string, pid int, t time.Time) string {
	return strings.NewReplacer("%%", "%", "%p", strconv.Itoa(pid), "%t", t.Format("20060102-150405")).Replace(name)
}

// Name is where the file is or will be.
func (f *File) Name() string { return f.name }

// Reserve checks that the file of this name can be written, so that a recording does
// not end with that error: its folder exists and takes files. A file of that name will be replaced.
func Reserve(name string) (*File, error) { return reserve(&File{name: name}) }

// ReserveNumbered is Reserve for a name that the user did not choose: if out.collapsed exists, out.1.collapsed is
// written, and so on. beside, if not nil, tells the name of a file that will go with it: a number is taken only if
// that name is free, too.
func ReserveNumbered(name string, beside func(string) string) (*File, error) {
	return reserve(&File{name: name, numbered: true, beside: beside})
}

// IsStream reports whether written data go away, to standard output, a pipe or a device: no later data can replace
// them.
func (f *File) IsStream() bool { return f.name == Stdout || f.stream != nil }

func reserve(f *File) (*File, error) {
	if f.name == Stdout || !f.numbered && f.isInherited() {
		return f, nil
	}
	if err := f.check(); err != nil {
		return nil, &FileError{f.name, plain(err)}
	}
	return f, nil
}

func (f *File) check() error {
	info, err := os.Lstat(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && f.numbered:
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return linkError(f.name, info)
	case info.IsDir():
		return errors.New("it is a folder")
	case isForeign(f.name, info):
		return fmt.Errorf("it is %s, and %w", ownedBy(info), ErrForeign)
	case !info.Mode().IsRegular():
		f.stream, err = openStream(f.name, info)
		return err
	}
	temp, err := f.temp()
	if err != nil {
		return err
	}
	temp.Close()
	return os.Remove(temp.Name())
}

// linkError says where a link leads: the link's maker may want goprof to write there.
func linkError(name string, info fs.FileInfo) error {
	to, err := os.Readlink(name)
	if err != nil {
		to = "?"
	}
	return fmt.Errorf("it is a symbolic link to %s (%s), and %w", to, ownedBy(info), ErrLink)
}

// temp makes a file beside the place that is meant. os.CreateTemp opens with O_EXCL, which follows no link, and mode
// 0600.
func (f *File) temp() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(f.name), "."+filepath.Base(f.name)+".*.tmp")
}

// Write writes the whole file and returns its name. A second call replaces what the first one wrote. A File that
// IsStream is written once.
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

func buffered(to io.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(to, 64<<10)
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

// unfinished are the names of the files that are being written.
var unfinished sync.Map

// RemoveUnfinished removes the files that are being written, when the process is about to end. None of them has its
// final name yet.
func RemoveUnfinished() {
	unfinished.Range(func(name, _ any) bool {
		os.Remove(name.(string))
		return true
	})
}

func (f *File) writeBeside(write func(io.Writer) error) (string, error) {
	temp, err := f.temp()
	if err != nil {
		return "", err
	}
	unfinished.Store(temp.Name(), true)
	defer unfinished.Delete(temp.Name())
	defer os.Remove(temp.Name()) // gone already if all went well
	err = buffered(temp, write)
	if err == nil {
		err = temp.Sync() // some file systems tell only now that they are full
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return "", err
	}
	if err := f.take(temp.Name()); err != nil {
		return "", err
	}
	return f.name, nil
}

// take gives a temporary file the name that is meant.
func (f *File) take(temp string) error {
	if !f.numbered {
		return os.Rename(temp, f.name)
	}
	name, err := f.place(temp)
	if err != nil {
		return err
	}
	os.Remove(temp)                  // removes the other name, if the file has two
	f.name, f.numbered = name, false // from now on the name is this File's
	return nil
}

// place gives a complete file the first free number.
func (f *File) place(temp string) (string, error) {
	for n := range maxNumber {
		name := f.number(n)
		if f.beside != nil {
			if _, err := os.Lstat(f.beside(name)); err == nil {
				continue
			}
		}
		err := os.Link(temp, name) // fails if anything of that name exists
		if err == nil {
			return name, nil
		}
		if _, statErr := os.Lstat(name); statErr == nil {
			continue
		}
		// A file system without hard links. The empty file holds the name meanwhile.
		hold, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		hold.Close()
		return name, os.Rename(temp, name)
	}
	return "", fmt.Errorf("%d files of that name are there", maxNumber)
}

func (f *File) number(n int) string {
	if n == 0 {
		return f.name
	}
	stem := format.Trim(f.name)
	return fmt.Sprintf("%s.%d%s", stem, n, f.name[len(stem):])
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
