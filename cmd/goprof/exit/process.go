//go:build linux

package exit

import (
	"fmt"
	"os"

	"goprof/diagnose"
)

// CannotLook returns why a process cannot be read, with the command that mends it. err is an error of session.Attach,
// or of a recording or a dump.
func CannotLook(pid int, err error) error {
	return OfCause(fmt.Sprintf("cannot look at process %d", pid), Host().Explain(pid, err), err)
}

// Host is this machine. Its remedies repeat goprof's command line.
func Host() diagnose.Host { return diagnose.Host{Command: CommandLine(os.Args)} }

// OfCause returns what cannot be done, and why.
func OfCause(what string, c diagnose.Cause, err error) *Error {
	return &Error{Code: CodeOf(c.Class), What: what, Why: c.Why, Remedy: c.Remedy, Err: err}
}

// CodeOf returns the exit code of a cause.
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
