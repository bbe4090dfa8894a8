// Package exit assigns an exit code to each way in which a command can fail. Its errors say what failed, why, and which
// command mends it: CannotRead and CannotWrite for files, CannotLook for processes. Only Tell shows errors to the user.
// Notes and Doubts are messages about successful runs.
package exit

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"goprof/output"
)

// Code is the exit status of the process. Scripts rely on the numbers, so they never change.
type Code int

const (
	OK      Code = 0
	General Code = 1
	// 2 has no meaning here: shells and Go itself use it for usage errors and panics.
	NoSuchProcess Code = 3
	NotJVM        Code = 4
	NotPermitted  Code = 5
	TargetGone    Code = 6
	NoSamples     Code = 7
	BadInput      Code = 8
	OutputFailed  Code = 9
	Incomplete    Code = 10
	Changed       Code = 11
	Deadlocked    Code = 12
	Found         Code = 13
	BadCore       Code = 14
	NamesLeft     Code = 15
	NoEvent       Code = 16
	Undelivered   Code = 17
)

// Error is a failure with the text for the user.
type Error struct {
	Code   Code
	What   string // what could not be done: "cannot read out.collapsed"
	Why    string // the cause, if What does not say it
	Remedy string // a command that mends it or shows more, if there is one
	Err    error  // the error underneath, for errors.Is
}

func (e *Error) Error() string {
	switch {
	case e.Why != "":
		return e.What + ": " + e.Why
	case e.Err != nil:
		return e.What + ": " + e.Err.Error()
	}
	return e.What
}

func (e *Error) Unwrap() error { return e.Err }

// Tell shows an error to the user, and returns its exit code.
func Tell(to io.Writer, err error) Code {
	if err == nil {
		return OK
	}
	fmt.Fprintf(to, "goprof: %s\n", oneLine(err.Error()))
	var e *Error
	if !errors.As(err, &e) {
		return General
	}
	if e.Remedy != "" {
		fmt.Fprintf(to, "try: %s\n", oneLine(e.Remedy))
	}
	if e.Code == OK {
		return General
	}
	return e.Code
}

// oneLine removes line breaks and terminal sequences from text that may contain names of the target or of files.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if output.Unsafe(r) {
			return ' '
		}
		return r
	}, s)
}
