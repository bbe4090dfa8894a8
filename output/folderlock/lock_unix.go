//go:build unix

package folderlock

import (
	"os"
	"syscall"
)

// Lock locks the file of this name in a folder, whose path is path. It does not wait for the lock.
func Lock(folder *os.Root, name, path string) (unlock func(), err error) {
	f, err := folder.OpenFile(name, os.O_CREATE|os.O_RDWR|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, &InUse{Path: path}
	}
	return func() { f.Close() }, nil
}
