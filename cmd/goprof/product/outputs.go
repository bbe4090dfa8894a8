//go:build linux

package main

import (
	"errors"
	"io"
	"path/filepath"
	"sync"
	"time"

	"goprof/cmd/goprof/product"
	"goprof/output"
	"goprof/output/format"
	"goprof/output/outfile"
)

// outputs are the files that a recording writes. They are checked before it begins. A signal may have them written
// while a loop finishes the same files.
type outputs struct {
	product.Product
	mu      sync.Mutex // held while they are written
	done    bool       // they were written for the last time, or will not be written
	summary *outfile.File
	beside  bool           // the summary goes beside the product, where "goprof flame" looks for it
	asked   bool           // the user has named the summary
	names   *product.Names // nil: names stay as they are
}

// reserve opens the files for a recording of a process that begins now.
func (f *recordFlags) reserve(pid int) (*outputs, error) {
	now := time.Now()
	o := &outputs{asked: f.summary != "", beside: f.summary == "" && f.as == format.Collapsed}
	file, err := f.reserveProduct(pid, now)
	if err != nil {
		return o, err
	}
	if f.loop > 0 && file.IsStream() {
		return o, &outfile.FileError{Name: f.output, Err: errLoopStream}
	}
	if f.spool != nil {
		o.Product = product.NewSpooled(file, f.spool, f.productOptions())
	} else if o.Product, err = product.New(f.as, file, f.productOptions()); err != nil {
		return o, err
	}
	if f.by != nil {
		o.names = product.NewNames(f.by, &f.byLock)
		o.Product = product.Redacted(o.Product, o.names)
	}
	switch {
	case f.summary != "":
		name, fixed := f.nameAt(f.summary, pid, now)
		if !fixed {
			o.summary, err = outfile.ReserveNumbered(name, nil)
			break
		}
		o.summary, err = f.named(name)
	case o.beside && f.output != "" && !file.IsStream() && f.fixedName():
		name, _ := f.nameAt(f.output, pid, now)
		o.summary, err = reserveBeside(name)
	}
	return o, err
}

// errLoopStream says that a loop needs files, and was given a stream.
var errLoopStream = errors.New("--loop begins a new file each time, and this is none")

func (f *recordFlags) reserveProduct(pid int, now time.Time) (*outfile.File, error) {
	name := f.output
	if name == "" {
		name = "out" + f.as.Extension()
		if len(f.pids) > 1 {
			name = "out-%p" + f.as.Extension()
		}
	}
	name, fixed := f.nameAt(name, pid, now)
	if f.output != "" && fixed {
		return f.named(name)
	}
	return outfile.ReserveNumbered(name, f.besideOf())
}

// named reserves a file by the name that the user gave. A pipe or a device is opened only once: its reader would take
// the first close for the end.
func (f *recordFlags) named(name string) (*outfile.File, error) {
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

// besideOf says how the file beside the stacks is named, in which "goprof flame" looks for the account.
func (f *recordFlags) besideOf() func(string) string {
	if f.summary != "" || f.as != format.Collapsed {
		return nil
	}
	return output.SummaryPath
}

// errDone says that the files are finished.
var errDone = errors.New("it has been written to the end")

// write writes all files for the last time, and returns the name of the first. An account that the user has named is
// written even if the product failed: it says what was recorded.
func (o *outputs) write(r *product.Recorded) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = true
	name, err := o.Finish(r)
	if err != nil && !o.asked {
		return "", err
	}
	return name, errors.Join(err, o.writeSummary(name, r))
}

// writeSoFar writes the files that can be written again at the end. A stream can be written only once.
func (o *outputs) writeSoFar(r *product.Recorded) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return "", errDone
	}
	name, err := o.SoFar(r)
	if err == nil && (o.summary == nil || !o.summary.IsStream()) {
		err = o.writeSummary(name, r)
	}
	return name, err
}

// leaveOut removes the files of a recording without samples. An account that the user has named stays. The error that
// leaveOut returns may be why there are no samples.
func (o *outputs) leaveOut(r *product.Recorded, account bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = true
	err := o.Discard()
	if o.asked && account {
		err = errors.Join(err, o.writeSummary("", r))
	}
	return err
}

// writeSummary writes the account, if one is wanted. Its place may depend on the name that the product got.
func (o *outputs) writeSummary(name string, r *product.Recorded) (err error) {
	if o.summary == nil && o.beside && !o.File().IsStream() {
		if o.summary, err = reserveBeside(name); err != nil {
			return err
		}
	}
	if o.summary == nil {
		return nil
	}
	if o.beside { // another recording may have ended meanwhile
		if err := mayReplace(o.summary, o.File().Name()); err != nil {
			return &accountError{err}
		}
	}
	account := *r.Summary
	account.Of = filepath.Base(o.File().Name())
	if o.names != nil {
		account = *o.names.Of(&product.Recorded{Summary: &account, At: r.At}).Summary
	}
	_, err = o.summary.Write(func(w io.Writer) error { return output.WriteSummary(w, &account) })
	return err
}
