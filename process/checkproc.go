//go:build linux

package process

import (
	"os"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// CheckProc returns ErrNoProc or ErrOtherProc if the numbers in /proc are not valid for goprof's system calls. With
// such numbers goprof would look at the wrong process.
func CheckProc() error {
	var fs unix.Statfs_t
	if unix.Statfs("/proc", &fs) != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		return ErrNoProc
	}
	// A /proc of an outer pid namespace shows this process with one number for each namespace (NSpid). Any other foreign
	// /proc does not have this process.
	self, err := procfs.Read("/proc/self/status", procfs.MaxFile)
	if s := procfs.ParseStatus(self); err != nil || s.Nested() || s.TGID != os.Getpid() {
		return ErrOtherProc
	}
	return nil
}
