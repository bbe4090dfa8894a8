//go:build linux

package target

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Why a process cannot be opened.
var (
	ErrNoProcess    = errors.New("no such process")
	ErrNotPermitted = errors.New("not permitted")
	ErrNoMemory     = errors.New("it has no memory of its own (a kernel thread, or it is just exiting)")
	ErrUnknownCPU   = errors.New("not a 64-bit program of a CPU that goprof knows")
)

// OpenError says why a process could not be opened. Err is one of the errors above, or
// what the kernel said.
type OpenError struct {
	PID   int
	Op    string // what was tried: a file of /proc/PID or a system call
	Err   error
	Cause string // what stands in the way and what to do about it; may be empty
}

func (e *OpenError) Error() string {
	s := fmt.Sprintf("process %d: %v", e.PID, e.Err)
	if e.Cause != "" {
		s += ": " + e.Cause
	}
	return s
}

func (e *OpenError) Unwrap() error { return e.Err }

func openError(pid int, op string, err error) error {
	e := &OpenError{PID: pid, Op: op, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH), errors.Is(err, ErrGone):
		e.Err = ErrNoProcess
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, ErrNotPermitted):
		e.Err, e.Cause = ErrNotPermitted, whyForbidden(pid)
	}
	return e
}

// whyForbidden finds out which of the kernel's rules forbids to look into a process
// (kernel/ptrace.c, __ptrace_may_access, and security/yama).
func whyForbidden(pid int) string {
	status, err := readStatus(pid, pid)
	if err != nil {
		return ""
	}
	me := os.Geteuid()
	if status.uid != me && me != 0 {
		return fmt.Sprintf("it belongs to user %d and goprof runs as user %d; run goprof as that user or as root", status.uid, me)
	}
	if scope := yamaScope(); scope > 0 && me != 0 {
		return fmt.Sprintf("kernel.yama.ptrace_scope is %d; run goprof as root, or set it to 0", scope)
	}
	if status.uid != me {
		return "goprof is root but lacks CAP_SYS_PTRACE; in a container, add that capability"
	}
	return "it is not dumpable, has capabilities that goprof lacks, or a security module forbids it; run goprof as root with CAP_SYS_PTRACE"
}

func yamaScope() int {
	b, err := readBounded("/proc/sys/kernel/yama/ptrace_scope", 16)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}
