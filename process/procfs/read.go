//go:build linux

package procfs

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// MaxFile bounds the bytes of a small file of /proc.
const MaxFile = 64 << 10

// Read returns up to most bytes of a file of /proc. Opening cannot block: these are files of the kernel, not of the
// target.
func Read(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// ReadStat reads the stat of a thread and its name.
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

// ReadStatus reads the status of a thread.
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
