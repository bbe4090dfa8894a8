//go:build linux || darwin

package unpack

import (
	"os"

	"golang.org/x/sys/unix"
)

// roomFor returns the number of bytes that goprof may still write to the disk of a file.
func roomFor(f *os.File) (bytes int64, known bool) {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
