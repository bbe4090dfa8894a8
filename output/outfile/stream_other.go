//go:build !unix

package outfile

import (
	"errors"
	"io/fs"
	"os"
)

func isForeign(*os.Root, fs.FileInfo) bool { return false }

func ownedBy(fs.FileInfo) string { return "somebody's" }

func openStream(*os.Root, string, fs.FileInfo) (*os.File, error) {
	return nil, errors.New("it is no file")
}

func (f *File) isInherited() bool { return false }
