//go:build !linux

package process

import (
	"errors"
	"os"
	"strings"
)

// openBelow opens a regular file by a path below root. The path comes from an untrusted file. Nothing outside of root
// is opened.
func openBelow(root, path string) (*os.File, int64, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, 0, err
	}
	defer dir.Close()
	path = strings.TrimLeft(path, "/")
	// Opening a pipe may block. So the file's kind is checked before it is opened, and again afterwards.
	if st, err := dir.Stat(path); err != nil {
		return nil, 0, err
	} else if !st.Mode().IsRegular() {
		return nil, 0, errNoRegularFile
	}
	f, err := dir.Open(path)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, 0, errors.Join(errNoRegularFile, err)
	}
	return f, st.Size(), nil
}

var errNoRegularFile = errors.New("process: not a regular file")
