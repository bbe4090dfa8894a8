//go:build linux

package diagnose

import (
	"errors"

	"golang.org/x/sys/unix"

	"goprof/process"
)

// CheckProc returns why goprof cannot find any process, or nil if it can. /proc may be missing. Or /proc shows another
// pid namespace, whose numbers mean other processes in goprof's system calls.
func (h Host) CheckProc() *Cause {
	if h.Proc != "" {
		return nil // a test's /proc
	}
	if err := process.CheckProc(); err != nil {
		return new(h.explainProc(err))
	}
	return nil
}

func (h Host) explainProc(err error) Cause {
	if errors.Is(err, process.ErrOtherProc) {
		return Cause{Class: Forbidden, Name: "other-proc",
			Why:    "/proc shows another pid namespace than goprof's own, so its numbers mean other processes here",
			Remedy: "unshare --mount --propagation private sh -c 'mount -t proc proc /proc; exec " + h.command() + "'"}
	}
	return Cause{Class: Forbidden, Name: "no-proc",
		Why:    "/proc is not mounted here, and goprof sees processes by it only",
		Remedy: "mount -t proc proc /proc; " + h.command()}
}

// hidden reports whether a process exists that /proc does not show: /proc may be mounted with hidepid
// (Documentation/filesystems/proc.rst). Signal 0, which sends nothing, shows whether the process exists.
func (h Host) hidden(pid int) bool {
	return h.Proc == "" && pid > 0 && unix.Kill(pid, 0) == unix.EPERM
}
