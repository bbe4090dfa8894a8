//go:build linux

package exit

import (
	"fmt"
	"os"

	"goprof/diagnose"
)

// CannotLook says why a process cannot be looked at, and which command mends it. err is
// an error of session.Attach, or of a recording or a dump.
func CannotLook(pid int, err error) error {
	return OfCause(fmt.Sprintf("cannot look at process %d", pid), Host().Explain(pid, err), err)
}

// Host is this machine; its remedies repeat how goprof was called.
func Host() diagnose.Host { return diagnose.Host{Command: CommandLine(os.Args)} }

// OfCause says what cannot be done, and why.
func OfCause(what string, c diagnose.Cause, err error) *Error {
	return &Error{Code: CodeOf(c.Class), What: what, Why: c.Why, Remedy: c.Remedy, Err: err}
}

// CodeOf is the code of a cause.
func CodeOf(c diagnose.Class) Code {
	switch c {
	case diagnose.NoProcess:
		return NoSuchProcess
	case diagnose.NotJVM:
		return NotJVM
	case diagnose.Forbidden:
		return NotPermitted
	case diagnose.Gone:
		return TargetGone
	}
	return General
}
