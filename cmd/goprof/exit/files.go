package exit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"goprof/output"
	"goprof/output/jfr"
	"goprof/output/outfile"
	"goprof/output/recording"
)

// NotItself returns an error if a command would replace its input.
func NotItself(input, name string) error {
	in, err := os.Stat(input)
	if err != nil {
		return nil // the code that reads the file reports the error
	}
	if out, err := os.Stat(name); err != nil || !in.Mode().IsRegular() || !os.SameFile(in, out) {
		return nil
	}
	return &Error{Code: OutputFailed, What: "cannot write " + name, Why: "it is the recording itself"}
}

// CannotRead returns why a file cannot be read, with a remedy.
func CannotRead(name string, err error) *Error {
	e := &Error{Code: BadInput, What: "cannot read " + name, Err: err}
	var path *fs.PathError
	var bad *output.BadFile
	var chunk *jfr.BadRecording
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Why = "there is no such file"
	case errors.As(err, &path):
		e.Why = path.Err.Error()
	case errors.As(err, &bad) && bad.TooMuch && bad.Line > 1:
		e.Remedy = "a part of it: " + CommandLine([]string{"head", "-n", strconv.Itoa(bad.Line - 1), name}) +
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

// AccountError is an error about the default file of the account.
type AccountError struct{ Err error }

func (e *AccountError) Error() string { return e.Err.Error() }
func (e *AccountError) Unwrap() error { return e.Err }

// CannotWrite reports a result that could not be written, if there is an error.
func CannotWrite(err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Code: OutputFailed, What: err.Error(), Err: err}
	var fe *outfile.FileError
	if errors.As(err, &fe) {
		name := fe.Name
		if name == outfile.Stdout {
			name = "standard output"
		}
		e.What, e.Err = "cannot write "+name, fe.Err
	}
	account := errors.As(err, new(*AccountError))
	var cut *jfr.WriteError
	switch {
	case account && fe != nil:
		e.What += ", where the account of the run goes"
		e.Remedy = "--summary FILE names another place for the account; " + CommandLine([]string{"rm", fe.Name}) +
			" frees this one, if it is not needed"
	case errors.As(err, &cut) && cut.Whole > 0 && fe != nil && fe.Name != outfile.Stdout:
		e.Remedy = CommandLine([]string{"goprof", "report", fe.Name}) + " shows what was written before"
	case errors.Is(err, outfile.ErrLink):
		e.Remedy = "the name that the link leads to, or -o - for standard output"
	case errors.Is(err, outfile.ErrForeign):
		e.Remedy = "-o with a name in a folder that only you may write to, or -o - for standard output"
	case errors.Is(err, outfile.ErrNoReader) && fe != nil:
		e.Remedy = "begin to read it first: " + CommandLine([]string{"cat", fe.Name}) + " > FILE &"
	case fe != nil && fe.Name != outfile.Stdout:
		e.Remedy = elsewhere(fe)
	}
	return e
}

// elsewhere returns the remedy for a file that cannot be written.
func elsewhere(fe *outfile.FileError) string {
	folder, base := filepath.Dir(fe.Name), filepath.Base(fe.Name)
	other := "a name in another folder, such as " + CommandLine([]string{filepath.Join(os.TempDir(), base)})
	switch {
	case errors.Is(fe.Err, fs.ErrNotExist):
		return CommandLine([]string{"mkdir", "-p", folder}) + ", or " + other
	case errors.Is(fe.Err, syscall.ENOSPC):
		return "a name on another disk: this one is full"
	case errors.Is(fe.Err, syscall.EISDIR):
		return "a name in that folder: " + CommandLine([]string{filepath.Join(fe.Name, "out.collapsed")})
	}
	return other
}

// lacking sets the exit code and remedy if a recording lacks what is needed.
func lacking(e *Error, name string, err error) {
	var lacks *recording.Lacks
	switch {
	case errors.As(err, &lacks):
		e.Remedy = lacks.Remedy
	case recording.IsEmpty(err):
		e.Code, e.What = NoSamples, "no samples are left of "+name
	}
}
