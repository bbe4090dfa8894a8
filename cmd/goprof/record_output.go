//go:build linux

package main

import (
	"io"
	"time"

	"goprof/output"
	"goprof/profile"
)

// outputs are the files that a recording ends in. They are checked before it begins.
type outputs struct {
	stacks, summary *output.File
	asked           bool // for the summary, by its name
}

// reserve finds the files for the recording of a process.
func (f *recordFlags) reserve(pid int) (outputs, error) {
	var o outputs
	var err error
	switch {
	case f.output != "":
		name := output.Expand(f.output, pid, time.Now())
		if o.stacks, err = f.named(name); err == nil && f.summary == "" && !o.stacks.IsStream() {
			if o.summary, err = output.Reserve(output.SummaryPath(name)); err != nil {
				err = &accountError{err}
			}
		}
	case len(f.pids) > 1:
		o.stacks, err = output.ReserveNumbered(output.Expand("out-%p.collapsed", pid, time.Now()), f.beside())
	default:
		o.stacks, err = output.ReserveNumbered("out.collapsed", f.beside())
	}
	if err == nil && f.summary != "" {
		o.summary, err = f.named(output.Expand(f.summary, pid, time.Now()))
	}
	o.asked = f.summary != ""
	return o, err
}

// named reserves a file by the user's name for it. What is not a file is opened, and only once: its reader would take
// the first end for the end of all.
func (f *recordFlags) named(name string) (*output.File, error) {
	if file := f.streams[name]; file != nil {
		return file, nil
	}
	file, err := output.Reserve(name)
	if err == nil && file.IsStream() {
		if f.streams == nil {
			f.streams = map[string]*output.File{}
		}
		f.streams[name] = file
	}
	return file, err
}

// beside tells what is written beside the stacks: where "goprof flame" looks for the account.
func (f *recordFlags) beside() func(string) string {
	if f.summary != "" {
		return nil
	}
	return output.SummaryPath
}

// write writes both files and returns the name of the first.
func (o *outputs) write(p *profile.Profile, sum *profile.Summary) (string, error) {
	name, err := o.writeStacks(p)
	if err != nil {
		return "", err
	}
	return name, o.writeSummary(sum)
}

// writeSoFar writes what can be written anew at the end: a stream is not.
func (o *outputs) writeSoFar(p *profile.Profile, sum *profile.Summary) (string, error) {
	name, err := o.writeStacks(p)
	if err == nil && o.summary != nil && !o.summary.IsStream() {
		err = o.writeSummary(sum)
	}
	return name, err
}

// writeStacks writes the first file, and finds the place of the other where that goes by the name that the first one
// got.
func (o *outputs) writeStacks(p *profile.Profile) (string, error) {
	name, err := o.stacks.Write(func(w io.Writer) error { return output.Collapsed(w, p) })
	if err != nil {
		return "", err
	}
	if o.summary == nil && !o.stacks.IsStream() {
		if o.summary, err = output.Reserve(output.SummaryPath(name)); err != nil {
			return "", &accountError{err}
		}
	}
	return name, nil
}

// writeSummary writes the account, where there is a file for it.
func (o *outputs) writeSummary(sum *profile.Summary) error {
	if o.summary == nil {
		return nil
	}
	_, err := o.summary.Write(func(w io.Writer) error { return output.WriteSummary(w, sum) })
	return err
}
