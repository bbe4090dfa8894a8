package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/jfr"
	"goprof/output/outfile"
)

// notItself refuses to replace a recording by what is made from it.
func notItself(input, name string) error {
	in, err := os.Stat(input)
	if err != nil {
		return nil // the code that reads the file will say what is wrong
	}
	if out, err := os.Stat(name); err != nil || !in.Mode().IsRegular() || !os.SameFile(in, out) {
		return nil
	}
	return &exit.Error{Code: exit.OutputFailed, What: "cannot write " + name, Why: "it is the recording itself"}
}

func badInput(name string, err error) *exit.Error {
	e := &exit.Error{Code: exit.BadInput, What: "cannot read " + name, Err: err}
	var path *fs.PathError
	var bad *output.BadFile
	var chunk *jfr.BadRecording
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Why = "there is no such file"
	case errors.As(err, &path):
		e.Why = path.Err.Error()
	case errors.As(err, &bad) && bad.TooMuch && bad.Line > 1:
		e.Remedy = "a part of it: " + commandLine([]string{"head", "-n", strconv.Itoa(bad.Line - 1), name}) +
			" | goprof flame - -o part.html"
	case bad != nil && !bad.TooMuch:
		e.Remedy = "goprof record --pid PID -o FILE.collapsed writes such files: lines \"root;caller;leaf count\""
	case errors.As(err, &chunk) && chunk.Incomplete:
		e.Remedy = "wait for whoever writes it; jcmd PID JFR.dump writes a whole one"
	default:
		lacking(e, name, err)
	}
	return e
}

// nearFile names a file that might have been meant.
func nearFile(missing string) string {
	found, err := filepath.Glob(filepath.Join(filepath.Dir(missing), "*.collapsed"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// accountError is about the file for the account where no flag has named one.
type accountError struct{ error }

func (e *accountError) Unwrap() error { return e.error }

// outputFailed reports a result that could not be written, if there is an error.
func outputFailed(err error) error {
	if err == nil {
		return nil
	}
	e := &exit.Error{Code: exit.OutputFailed, What: err.Error(), Err: err}
	var fe *outfile.FileError
	if errors.As(err, &fe) {
		name := fe.Name
		if name == outfile.Stdout {
			name = "standard output"
		}
		e.What, e.Err = "cannot write "+name, fe.Err
	}
	account := errors.As(err, new(*accountError))
	var cut *jfr.WriteError
	switch {
	case account && fe != nil:
		e.What += ", where the account of the run goes"
		e.Remedy = "--summary FILE names another place for the account; " + commandLine([]string{"rm", fe.Name}) +
			" frees this one, if it is not needed"
	case errors.As(err, &cut) && cut.Whole > 0 && fe != nil && fe.Name != outfile.Stdout:
		e.Remedy = commandLine([]string{"goprof", "report", fe.Name}) + " shows what was written before"
	case errors.Is(err, outfile.ErrLink):
		e.Remedy = "the name that the link leads to, or -o - for standard output"
	case errors.Is(err, outfile.ErrForeign):
		e.Remedy = "-o with a name in a folder that only you may write to, or -o - for standard output"
	case errors.Is(err, outfile.ErrNoReader) && fe != nil:
		e.Remedy = "begin to read it first: " + commandLine([]string{"cat", fe.Name}) + " > FILE &"
	case fe != nil && fe.Name != outfile.Stdout:
		e.Remedy = elsewhere(fe)
	}
	return e
}

// elsewhere returns the remedy where a file cannot be written.
func elsewhere(fe *outfile.FileError) string {
	folder, base := filepath.Dir(fe.Name), filepath.Base(fe.Name)
	other := "a name in another folder, such as " + commandLine([]string{filepath.Join(os.TempDir(), base)})
	switch {
	case errors.Is(fe.Err, fs.ErrNotExist):
		return commandLine([]string{"mkdir", "-p", folder}) + ", or " + other
	case errors.Is(fe.Err, syscall.ENOSPC):
		return "a name on another disk: this one is full"
	case errors.Is(fe.Err, syscall.EISDIR):
		return "a name in that folder: " + commandLine([]string{filepath.Join(fe.Name, "out.collapsed")})
	}
	return other
}
