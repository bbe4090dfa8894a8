//go:build linux

package process

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Reasons why a process cannot be opened.
var (
	ErrNoProcess    = errors.New("no such process")
	ErrNotPermitted = errors.New("not permitted")
	ErrNoMemory     = errors.New("it has no memory of its own (a kernel thread, or it is just exiting)")
	ErrNoProc       = errors.New("/proc is not mounted")
	ErrOtherProc    = errors.New("/proc shows another pid namespace than goprof's own")
	ErrUnknownCPU   = errors.New("not a 64-bit program of a CPU that goprof knows")
)

// OpenError is the error of Open. Err is one of the errors above, or the kernel's. Package diagnose finds the cause and
// the remedy.
type OpenError struct {
	PID    int
	Err    error
	Detail string // details that were found; may be empty
}

func (e *OpenError) Error() string {
	s := fmt.Sprintf("process %d: %v", e.PID, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func (e *OpenError) Unwrap() error { return e.Err }

func openError(pid int, err error) error {
	e := &OpenError{PID: pid, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH), errors.Is(err, ErrGone):
		e.Err = ErrNoProcess
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, ErrNotPermitted):
		e.Err = ErrNotPermitted
	}
	return e
}
