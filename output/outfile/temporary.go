package outfile

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"sync"
)

// temporary is a file that is being written, under a hidden name in the folder of the result.
type temporary struct {
	*os.File
	folder *os.Root
	base   string
}

// unfinished are the temporary files without a final name.
var unfinished sync.Map

// temp makes a temporary file. O_EXCL follows no link.
func (f *File) temp() (*temporary, error) {
	for tries := 0; ; tries++ {
		base := "." + f.base + "." + strconv.FormatUint(uint64(rand.Uint32()), 10) + ".tmp"
		file, err := f.folder.OpenFile(base, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && tries < 100 {
			continue
		}
		if err != nil {
			return nil, err
		}
		t := &temporary{file, f.folder, base}
		unfinished.Store(t, true)
		return t, nil
	}
}

// remove removes the file's hidden name.
func (t *temporary) remove() error {
	t.finished()
	return t.folder.Remove(t.base)
}

// finished notes that the hidden name is no longer this file's.
func (t *temporary) finished() { unfinished.Delete(t) }

// RemoveUnfinished removes the unfinished files. Call it when the process is about to end. None of these files has its
// final name yet.
func RemoveUnfinished() {
	unfinished.Range(func(t, _ any) bool {
		t.(*temporary).remove()
		return true
	})
}

// leftover matches the name of a temporary file.
var leftover = regexp.MustCompile(`^\.(.+)\.\d{1,10}\.tmp$`)

// Leftover returns the final name for a temporary file named base. ok is false for other files. A goprof that was
// killed leaves temporary files. They may be removed if no other goprof writes in the folder.
func Leftover(base string) (name string, ok bool) {
	m := leftover.FindStringSubmatch(base)
	if m == nil {
		return "", false
	}
	return m[1], true
}
