//go:build linux

package threads

import (
	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// KeptFiles counts the descriptors that a list of threads keeps open, so that it need not open the files for each read.
type KeptFiles struct {
	most, left int
}

// KeepFiles makes KeptFiles for at most that many descriptors.
func KeepFiles(most int) KeptFiles { return KeptFiles{most, most} }

// Read returns the contents of a thread's file. The result is nil if the thread has ended.
//
// kept holds the open descriptor of the file, or -1. If it is -1, Read opens the file. It leaves the file open and sets
// kept if keep is true and the limit of open files is not reached. giveUp must close some kept files. Read calls giveUp
// if goprof or the host has no descriptors left.
func (k *KeptFiles) Read(proc *procfs.Dir, tid int, name string, kept *int32, keep bool, giveUp func()) []byte {
	if *kept >= 0 {
		return proc.ReadFD(int(*kept))
	}
	fd, err := proc.Open(tid, name)
	if err == unix.EMFILE || err == unix.ENFILE {
		giveUp()
		k.left = 0
		fd, err = proc.Open(tid, name)
	}
	if err != nil {
		return nil
	}
	b := proc.ReadFD(fd)
	if keep && k.left > 0 {
		k.left--
		*kept = int32(fd)
	} else {
		unix.Close(fd)
	}
	return b
}

// Close closes a file that Read has kept open.
func (k *KeptFiles) Close(kept *int32) {
	if *kept >= 0 {
		unix.Close(int(*kept))
		*kept = -1
		k.left++
	}
}

func (k *KeptFiles) isShort() bool { return k.left <= k.most/4 }
