//go:build linux

package procfs

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// MaxFile bounds the bytes of a small file of /proc.
const MaxFile = 64 << 10

// Read returns up to most bytes of a file of /proc. Opening cannot block, because these are files of the kernel, not of
// the target.
func Read(path string, most int64) ([]byte, error) {
	fd, err := again(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 512)
	for int64(len(b)) < most {
		b = slices.Grow(b, 1)
		n, err := again(func() (int, error) { return unix.Read(fd, b[len(b):min(int64(cap(b)), most)]) })
		if err != nil {
			return b, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		b = b[:len(b)+n]
	}
	return b, nil
}

// again repeats a system call while signals interrupt it.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// ReadStat reads the stat of a thread, and the thread's name.
func ReadStat(pid, tid int) (s Stat, comm string, err error) {
	b, err := Read(TaskFile(pid, tid, "stat"), 4096)
	if err != nil {
		return s, "", err
	}
	if s, _ = ParseStat(b); s.State == 0 {
		return s, "", fmt.Errorf("procfs: cannot read stat: %q", b)
	}
	return s, Comm(b), nil
}

func ReadStatus(pid, tid int) (Status, error) {
	b, err := Read(TaskFile(pid, tid, "status"), MaxFile)
	if err != nil {
		return Status{}, err
	}
	if len(b) == 0 {
		return Status{}, unix.ESRCH
	}
	return ParseStatus(b), nil
}
