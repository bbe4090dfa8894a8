//go:build linux

package main

import (
	"fmt"
	"os"

	"goprof/cmd/goprof/exit"
	"goprof/diagnose"
)

// attachError says why a process cannot be looked at, and which command mends it. err is
// an error of session.Attach, or of a recording or a dump.
func attachError(pid int, err error) error {
	return causeError(fmt.Sprintf("cannot look at process %d", pid), host().Explain(pid, err), err)
}

// host is this machine; its remedies repeat how goprof was called.
func host() diagnose.Host { return diagnose.Host{Command: commandLine(os.Args)} }

func causeError(what string, c diagnose.Cause, err error) *exit.Error {
	return &exit.Error{Code: codeOf(c.Class), What: what, Why: c.Why, Remedy: c.Remedy, Err: err}
}

func codeOf(c diagnose.Class) exit.Code {
	switch c {
	case diagnose.NoProcess:
		return exit.NoSuchProcess
	case diagnose.NotJVM:
		return exit.NotJVM
	case diagnose.Forbidden:
		return exit.NotPermitted
	case diagnose.Gone:
		return exit.TargetGone
	}
	return exit.General
}
