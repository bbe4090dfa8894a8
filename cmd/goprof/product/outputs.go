//go:build linux

package product

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/profile/redact"
)

// Files say which files recordings make: one, one for each JVM, or one after the other. The zero Files are for one
// recording, out.collapsed.
type Files struct {
	Options
	As              format.Format
	Output, Summary string // names, with %p and %t; empty: defaults
	Several         bool   // several JVMs: default names contain the pid
	Loop            bool   // one JVM, one file after the other: names contain the time
	By              *redact.Redactor
	Spool           *os.File      // receives the JFR file, which becomes a part of Whole; nil otherwise
	Whole           *outfile.File // with Spool

	byLock  sync.Mutex               // held while By is used, because several JVMs may be recorded
	streams map[string]*outfile.File // open streams
}

// Outputs are the files of one recording: its product and its account. They are checked before it begins. A signal may
// write them while a loop finishes the same files.
type Outputs struct {
	Product
	mu      sync.Mutex // held while files are written
	done    bool       // they were finished or discarded
	summary *outfile.File
	beside  bool   // the summary is beside the product, where "goprof flame" looks for it
	asked   bool   // the user has named the summary
	names   *names // nil: names are kept
}

// Reserve opens the files for a recording of a process that begins now.
func (f *Files) Reserve(pid int) (*Outputs, error) {
	now := time.Now()
	opt := f.Options
	opt.nameless = f.By != nil
	o := &Outputs{asked: f.Summary != "", beside: f.Summary == "" && f.As == format.Collapsed}
	file, err := f.reserveProduct(pid, now)
	if err != nil {
		return o, err
	}
	if f.Loop && file.IsStream() {
		return o, &outfile.FileError{Name: f.Output, Err: errLoopStream}
	}
	if f.Spool != nil {
		o.Product = newSpooled(file, f.Spool, opt)
	} else if o.Product, err = New(f.As, file, opt); err != nil {
		return o, err
	}
	if f.By != nil {
		o.names = newNames(f.By, &f.byLock)
		o.Product = &redactedProduct{o.Product, o.names}
	}
	switch {
	case f.Summary != "":
		name, fixed := f.nameAt(f.Summary, pid, now)
		if !fixed {
			o.summary, err = outfile.ReserveNumbered(name, nil)
			break
		}
		o.summary, err = f.named(name)
	case o.beside && f.Output != "" && !file.IsStream():
		if name, fixed := f.nameAt(f.Output, pid, now); fixed {
			o.summary, err = reserveBeside(name)
		}
	}
	return o, err
}

// errLoopStream says that a loop needs files, and got a stream.
var errLoopStream = errors.New("--loop begins a new file each time, and this is none")

func (f *Files) reserveProduct(pid int, now time.Time) (*outfile.File, error) {
	if f.Spool != nil {
		return f.Whole, nil
	}
	name := f.Output
	if name == "" {
		name = "out" + f.As.Extension()
		if f.Several {
			name = "out-%p" + f.As.Extension()
		}
	}
	name, fixed := f.nameAt(name, pid, now)
	if f.Output != "" && fixed {
		return f.named(name)
	}
	var besides func(string) string // returns the file in which "goprof flame" looks for the account
	if f.Summary == "" && f.As == format.Collapsed {
		besides = output.SummaryPath
	}
	return outfile.ReserveNumbered(name, besides)
}

// nameAt returns a file's name with its pid and time. fixed is false if goprof itself added the time: such a file never
// replaces another one.
func (f *Files) nameAt(name string, pid int, at time.Time) (full string, fixed bool) {
	fixed = !f.Loop || strings.Contains(strings.ReplaceAll(name, "%%", ""), "%t") || name == outfile.Stdout
	if !fixed {
		stem := format.Trim(name)
		name = stem + "-%t" + name[len(stem):]
	}
	return outfile.Expand(name, pid, at), fixed
}

// named reserves a file with a name that the user gave. A pipe or a device is opened only once, because its reader
// takes the first close as the end.
func (f *Files) named(name string) (*outfile.File, error) {
	if file := f.streams[name]; file != nil {
		return file, nil
	}
	file, err := outfile.Reserve(name)
	if err == nil && file.IsStream() {
		if f.streams == nil {
			f.streams = map[string]*outfile.File{}
		}
		f.streams[name] = file
	}
	return file, err
}

// ErrDone says that the files are finished.
var ErrDone = errors.New("it has been written to the end")

// Finish writes all files for the last time, and returns the name of the first. An account that the user has named is
// written even if the product failed, because it says what was recorded.
func (o *Outputs) Finish(r *Recorded) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = true
	name, err := o.Product.Finish(r)
	if err != nil && !o.asked {
		return "", err
	}
	return name, errors.Join(err, o.writeSummary(name, r))
}

// SoFar writes the files that can be written again at the end. A stream can only be written once.
func (o *Outputs) SoFar(r *Recorded) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return "", ErrDone
	}
	name, err := o.Product.SoFar(r)
	if err == nil && (o.summary == nil || !o.summary.IsStream()) {
		err = o.writeSummary(name, r)
	}
	return name, err
}

// LeaveOut removes the files of a recording without samples. If r is not nil, an account that the user has named is
// written. The returned error may be why there are no samples.
func (o *Outputs) LeaveOut(r *Recorded) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = true
	err := o.Discard()
	if o.asked && r != nil {
		err = errors.Join(err, o.writeSummary("", r))
	}
	return err
}

// Shown returns an account without names, if the files have none.
func (o *Outputs) Shown(account *profile.Summary) *profile.Summary {
	if o.names == nil {
		return account
	}
	return o.names.Of(&Recorded{Summary: account}).Summary
}

// Made returns the files that were made, for their later deletion.
func (o *Outputs) Made() (files []*outfile.Made) {
	for _, f := range []*outfile.File{o.File(), o.summary} {
		if f == nil {
			continue
		}
		if made := f.Made(); made != nil {
			files = append(files, made)
		}
	}
	return files
}

// writeSummary writes the account, if one is wanted. Its place may depend on the product's final name.
func (o *Outputs) writeSummary(name string, r *Recorded) (err error) {
	if o.summary == nil && o.beside && !o.File().IsStream() {
		if o.summary, err = reserveBeside(name); err != nil {
			return err
		}
	}
	if o.summary == nil {
		return nil
	}
	if o.beside { // another recording may have ended since
		if err := mayReplace(o.summary, o.File().Name()); err != nil {
			return &exit.AccountError{Err: err}
		}
	}
	account := *r.Summary
	account.Of = filepath.Base(o.File().Name())
	shown := o.Shown(&account)
	_, err = o.summary.Write(func(w io.Writer) error { return output.WriteSummary(w, shown) })
	return err
}
