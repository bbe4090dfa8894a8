//go:build linux

package process

import (
	"os"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// CheckProc returns ErrNoProc or ErrOtherProc if the numbers in /proc are not those that goprof's system calls take.
// With such numbers goprof would look at another process than the one that is meant.
func CheckProc() error {
	var fs unix.Statfs_t
	if unix.Statfs("/proc", &fs) != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		return ErrNoProc
	}
	// A /proc of a namespace around ours tells all our numbers from there inward (NSpid). Any other /proc lacks us.
	self, err := procfs.Read("/proc/self/status", procfs.MaxFile)
	if s := procfs.ParseStatus(self); err != nil || s.Nested() || s.TGID != os.Getpid() {
		return ErrOtherProc
	}
	return nil
}
